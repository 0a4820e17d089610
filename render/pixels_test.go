//go:build services

package render_test

import (
	"bytes"
	"context"
	"html/template"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/wetink/wetink/render"
)

// camera is Debian's Chromium, drawing fragments with the sheet's own style.
type camera struct {
	t     *testing.T
	ctx   context.Context
	style string
}

func newCamera(t *testing.T) camera {
	t.Helper()
	style, err := os.ReadFile(filepath.Join("..", "approval", "page", "static", "page.css"))
	if err != nil {
		t.Fatal(err)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath("chromium"))...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(stop)
	if err := chromedp.Run(ctx, emulation.SetDeviceMetricsOverride(900, 700, 1, false), chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return camera{t, ctx, string(style)}
}

// draw takes the picture of a fragment; nothing of it is below the edge.
func (c camera) draw(fragment string) image.Image {
	c.t.Helper()
	var shot []byte
	var tall float64
	err := chromedp.Run(c.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		tree, err := page.GetFrameTree().Do(ctx)
		if err != nil {
			return err
		}
		return page.SetDocumentContent(tree.Frame.ID, `<!doctype html><html lang="en"><meta charset="utf-8"><style>`+c.style+`</style><body><main class="sheet">`+fragment+`</main></body></html>`).Do(ctx)
	}), chromedp.Evaluate(`document.documentElement.scrollHeight`, &tall), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		shot, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithClip(&page.Viewport{Width: 900, Height: tall, Scale: 1}).Do(ctx)
		return err
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		c.t.Fatal(err)
	}
	return picture
}

func same(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return true
}

// The exact bytes and the digest are folded away on the sheet, so that what differs is what a person sees of the value.
func TestNoDeceptionHasThePictureOfTheHonestText(t *testing.T) {
	c := newCamera(t)
	sheet := func(text string) image.Image {
		return c.draw(drawn(t, render.View{Change: one(t, `{"name":"x"}`, map[string]any{"name": text}), Now: now}, nil))
	}
	bare := func(text string) image.Image {
		return c.draw("<p><bdi>" + template.HTMLEscapeString(text) + "</bdi></p>")
	}
	drawnPairs, alike := 0, 0
	for _, d := range deceptions {
		if !utf8.ValidString(d.text) || !utf8.ValidString(d.honest) { // which no JSON text holds
			continue
		}
		drawnPairs++
		if same(sheet(d.honest), sheet(d.text)) {
			t.Errorf("%s, %s: %+q and %+q have the same picture", d.kind, d.name, d.honest, d.text)
		}
		if same(bare(d.honest), bare(d.text)) {
			alike++
		}
	}
	t.Logf("%d pairs, of which %d are alike to the pixel without tokens and badges", drawnPairs, alike)
	if drawnPairs < 40 {
		t.Errorf("%d pairs", drawnPairs)
	}
	if alike < 20 {
		t.Errorf("only %d pairs are alike without us: this test shows nothing", alike)
	}
	for _, pair := range [][2]string{{"a b", "a  b"}, {"a b", "a   b"}, {" a", "a"}, {"  a", " a"}, {persian, strings.ReplaceAll(persian, "\u200c", "")}} {
		if same(sheet(pair[0]), sheet(pair[1])) {
			t.Errorf("%q and %q have the same picture", pair[0], pair[1])
		}
	}
}
