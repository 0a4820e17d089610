package strictjson

import (
	"bytes"
	"fmt"
	"testing"
)

func calendar(size int) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := 0; ; i++ {
		fmt.Fprintf(&b, `{"id":%d,"start_date_local":"2026-03-01T07:00:00","category":"WORKOUT","name":"Tempo \u2013 3×12","type":"Ride","moving_time":4500,"icu_training_load":72.5,"tags":["a","b"],"workout_doc":{"steps":[{"duration":600}]}}`, 9007199254740993+i)
		if b.Len() >= size {
			b.WriteByte(']')
			return b.Bytes()
		}
		b.WriteByte(',')
	}
}

func wide(size int) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"stream_value_number_%d":"some text that is as long as a name","m%d":%d,`, i, i, i)
	}
	b.WriteString(`"end":0}`)
	return b.Bytes()
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		in   []byte
	}{{"1KiB", calendar(1 << 10)}, {"64KiB", calendar(64 << 10)}, {"64KiB-one-object", wide(64 << 10)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.in)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(c.in, Default); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	type item struct {
		ID       int64          `json:"id"`
		Start    string         `json:"start_date_local"`
		Category string         `json:"category"`
		Name     string         `json:"name"`
		Type     string         `json:"type"`
		Time     int            `json:"moving_time"`
		Load     float64        `json:"icu_training_load"`
		Tags     []string       `json:"tags"`
		Doc      map[string]any `json:"workout_doc"`
	}
	in := calendar(64 << 10)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var v []item
		if err := Decode(in, &v, Default); err != nil {
			b.Fatal(err)
		}
	}
}
