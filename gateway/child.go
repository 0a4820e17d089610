package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// How long an upstream process may take to read a message, and to answer an initialize.
const (
	writeWait = 30 * time.Second
	greetWait = 60 * time.Second
)

// Waits between starts, doubled from the first to the last and jittered.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 30 * time.Second
)

// child is an upstream process. When it dies it is started again, and told the initialize of its session again.
type child struct {
	l      *link
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // run is over

	mu    sync.Mutex
	p     *process      // the one that runs, nil while none does
	ready chan struct{} // closed while it runs
	err   error         // why the last start failed
}

func startChild(l *link) *child {
	c := &child{l: l, done: make(chan struct{}), ready: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	p, err := c.start()
	if err != nil {
		c.shut(err) // so that the first request hears it
	}
	go c.run(p, err)
	return c
}

// run starts it again and again until close.
func (c *child) run(p *process, err error) {
	defer close(c.done)
	wait := firstWait
	for {
		began := time.Now()
		ran := err == nil
		if ran {
			err = c.serve(p)
		}
		if c.shut(err); ran { // what did not run took no message
			c.l.lost(err)
		}
		if c.ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = firstWait
		}
		c.l.g.opt.Log.Warn("the upstream ended and is started again", "upstream", c.l.up.Name, "err", err, "wait", wait)
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-c.ctx.Done():
			return
		}
		wait = min(2*wait, lastWait)
		c.l.up.restarts.Add(1)
		p, err = c.start()
	}
}

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	exited chan struct{}
	hello  string // the id of the initialize that it has not answered yet
}

func (c *child) start() (*process, error) {
	u := c.l.up
	var opened []*os.File
	closeAll := func() {
		for _, f := range opened {
			f.Close()
		}
	}
	pair := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w, err
	}
	theirIn, in, err1 := pair()
	out, theirOut, err2 := pair()
	logs, theirErr, err3 := pair()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, err
	}
	cmd := exec.Command(u.Command[0], u.Command[1:]...)
	cmd.Dir, cmd.Env = u.Dir, u.Env
	if cmd.Env == nil {
		cmd.Env = inherited(os.Environ())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirErr
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, fmt.Errorf("%w: %w", errNoStart, err)
	}
	theirIn.Close()
	theirOut.Close()
	theirErr.Close()
	p := &process{cmd: cmd, in: in, out: out, exited: make(chan struct{})}
	go passOn(c.l.g.opt.Stderr, u.Name, logs)
	go func() {
		cmd.Wait()
		close(p.exited)
	}()
	_, hello := c.l.state()
	if hello == nil {
		c.open(p)
		return p, nil
	}
	p.hello = secretID()
	if err := write(in, line(requestLine([]byte(p.hello), "initialize", hello))); err != nil {
		c.end(p)
		return nil, err
	}
	return p, nil
}

// inherited is the environment without what is meant for this program alone.
func inherited(env []string) []string {
	list := make([]string, 0, len(env))
	for _, e := range env {
		if !strings.HasPrefix(strings.ToUpper(e), "WETINK_") {
			list = append(list, e)
		}
	}
	return list
}

func (c *child) open(p *process) {
	c.mu.Lock()
	c.p, c.err = p, nil
	close(c.ready)
	c.mu.Unlock()
}

func (c *child) shut(err error) {
	c.mu.Lock()
	if c.p != nil {
		c.p, c.ready = nil, make(chan struct{})
	}
	c.err = err
	c.mu.Unlock()
}

// serve reads until the process ends, or its output does, or close is called.
func (c *child) serve(p *process) error {
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-p.exited:
			// A grandchild may hold its output open: what is in the pipe is read, and no more.
			p.out.SetReadDeadline(time.Now().Add(time.Second))
		case <-c.ctx.Done():
			c.end(p)
			p.out.SetReadDeadline(time.Now())
		}
	}()
	var late *time.Timer
	if p.hello != "" {
		late = time.AfterFunc(greetWait, func() { p.out.SetReadDeadline(time.Now()) })
		defer late.Stop()
	}
	r := newLines(p.out, c.l.g.opt.UpstreamBytes)
	var err error
	for {
		var b []byte
		b, err = r.next()
		if errors.Is(err, errTooLong) {
			c.l.g.opt.Log.Error("a message is longer than allowed; the upstream is ended", "upstream", c.l.up.Name, "limit", c.l.g.opt.UpstreamBytes)
			break // what it answered is not known, so that whoever waits would wait for ever
		}
		if err != nil {
			break
		}
		if p.hello != "" {
			if c.greeted(p, b) {
				late.Stop()
			}
			continue
		}
		c.l.received(b)
	}
	c.shut(err)
	c.end(p)
	<-p.exited
	p.out.Close()
	if c.ctx.Err() != nil {
		<-stop
		return errors.New("the session ended")
	}
	<-stop
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("it answered with more than %d bytes", c.l.g.opt.UpstreamBytes)
	}
	if state := p.cmd.ProcessState; state != nil {
		return fmt.Errorf("it ended (%s)", state)
	}
	return fmt.Errorf("it ended: %w", err)
}

// greeted takes what comes before the answer to our initialize: nothing else is awaited.
func (c *child) greeted(p *process, b []byte) bool {
	m, err := peek(b, c.l.g.opt.Depth, false)
	if err != nil || !m.response() || string(m.id.of(b)) != p.hello {
		return false
	}
	p.hello = ""
	if m.err.ok() || write(p.in, line(requestLine(nil, "notifications/initialized", nil))) != nil {
		p.in.Close() // it will end, and be tried again
		return true
	}
	c.open(p)
	c.l.owner.again(c.l)
	return true
}

// end closes its input, and after the grace asks and then makes its group end.
func (c *child) end(p *process) {
	p.in.Close()
	for _, ask := range []func(*exec.Cmd){terminate, kill} {
		select {
		case <-p.exited:
			return
		case <-time.After(c.l.g.opt.Grace):
			ask(p.cmd)
		}
	}
	<-p.exited
}

func (c *child) send(_ context.Context, out outgoing) error {
	b := line(oneLine(out.b))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.p == nil {
		if c.err != nil {
			return fmt.Errorf("%w: %w", errDown, c.err)
		}
		return errDown
	}
	c.p.in.SetWriteDeadline(time.Now().Add(writeWait))
	n, err := c.p.in.Write(b)
	if err == nil {
		return nil
	}
	if n == 0 {
		return fmt.Errorf("it takes no message: %w", err)
	}
	// Half a message went out: no other can follow, and what the process makes of it is not known. Reading stops, and
	// with it the process.
	c.p.out.SetReadDeadline(time.Now())
	return nil
}

func write(f *os.File, b []byte) error {
	f.SetWriteDeadline(time.Now().Add(writeWait))
	_, err := f.Write(b)
	return err
}

// wait for it to run again.
func (c *child) wait(ctx context.Context) error {
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	late := time.NewTimer(c.l.g.opt.StartWait)
	defer late.Stop()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return errors.New("the session ended")
	case <-late.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("%w: %w", errDown, c.err)
	}
	return errDown
}

func (c *child) close() {
	c.cancel()
	<-c.done
}

// passOn copies what a process prints, line by line, until nobody holds the other end.
func passOn(w io.Writer, name string, r *os.File) {
	defer r.Close()
	in := bufio.NewReaderSize(r, 8<<10)
	prefix := []byte("[" + name + "] ")
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 {
			w.Write(append(append(bytes.Clone(prefix), bytes.TrimRight(part, "\r\n")...), '\n'))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
