package targettest_test

import (
	"encoding/json"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/targettest"
	"github.com/wetink/wetink/wetinktest"
)

func TestTheTargetOfTestsKeepsTheContract(t *testing.T) {
	targettest.Run(t, func(*testing.T) targettest.Case {
		target := wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		target.Put("b", `{"n":2}`)
		edits := 0
		request := func(ops string) wetink.Request { return wetink.Request{Args: json.RawMessage(ops)} }
		return targettest.Case{
			Target: target,
			Create: request(`{"ops":[{"action":"create","object":"c","set":{"n":3}}]}`),
			Update: request(`{"ops":[{"action":"update","object":"a","set":{"n":4}}]}`),
			Delete: request(`{"ops":[{"action":"delete","object":"b"}]}`),
			Bad:    request(`[]`),
			Edit: func(object string) {
				body := map[string]any{}
				if err := json.Unmarshal([]byte(target.Object(object)), &body); err != nil {
					panic(err)
				}
				edits++
				body["edited"] = edits
				b, err := json.Marshal(body)
				if err != nil {
					panic(err)
				}
				target.Put(object, string(b))
			},
			Effects: func() int { return len(target.Journal()) + edits },
		}
	})
}
