//go:build unix

package gateway

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the process the head of a group, so that what it starts (npx starts node) ends with it, and so that
// an interrupt at our terminal does not reach it before we ended it in order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func kill(cmd *exec.Cmd)      { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
