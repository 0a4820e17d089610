package notify

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// Desktop shows a notification on this machine's own screen, by the program that its system has for that:
// notify-send, osascript or PowerShell. No shell takes part, and what is shown is one of three constant texts:
// there is nothing that could be injected, and nothing to read for who looks over a shoulder.
type Desktop struct{ name, system string }

// NewDesktop works on Linux, macOS and Windows.
func NewDesktop(name string) (*Desktop, error) {
	switch runtime.GOOS {
	case "linux", "freebsd", "openbsd", "netbsd", "darwin", "windows":
		return &Desktop{name, runtime.GOOS}, nil
	default:
		return nil, fmt.Errorf("desktop %s: no way to show a notification on %s is known", name, runtime.GOOS)
	}
}

// Name implements Channel.
func (d *Desktop) Name() string { return d.name }

// Send implements Channel. It fails where nobody is logged in at a screen, and is then tried again like any other.
func (d *Desktop) Send(ctx context.Context, m Message) error {
	argv := desktopCommand(d.system, m)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second // a child of it that holds the pipes does not hold us
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("desktop: %s: %w", argv[0], err)
	}
	return nil
}

// desktopCommand returns the program and its arguments.
func desktopCommand(system string, m Message) []string {
	text := "Something waits for you."
	switch {
	case m.Waiting > 0 && m.InDoubt == 0:
		text = "A change waits for you."
	case m.InDoubt > 0 && m.Waiting == 0:
		text = "The outcome of a change is in doubt."
	}
	switch system {
	case "darwin":
		return []string{"osascript", "-e", `display notification "` + text + `" with title "` + Title + `"`}
	case "windows":
		return []string{"powershell.exe", "-NoProfile", "-NonInteractive", "-Command", `Add-Type -AssemblyName System.Windows.Forms, System.Drawing; ` +
			`$n = New-Object System.Windows.Forms.NotifyIcon; $n.Icon = [System.Drawing.SystemIcons]::Information; $n.Visible = $true; ` +
			`$n.ShowBalloonTip(10000, '` + Title + `', '` + text + `', 'Info'); Start-Sleep -Seconds 10; $n.Dispose()`}
	default:
		return []string{"notify-send", "--app-name=" + Title, Title, text}
	}
}
