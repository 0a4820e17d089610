package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wetink/wetink/internal/strictjson"
)

func ExampleDecode() {
	var args struct {
		Action string          `json:"action"`
		ID     int64           `json:"event_id"`
		Set    json.RawMessage `json:"set"`
	}
	for _, in := range []string{
		`{"action":"update","event_id":9007199254740993,"set":{"load":1.50}}`,
		`{"action":"update","event_id":1e3}`,
		`{"action":"update","Event_ID":7}`,
		`{"action":"delete","set":{"name":"a","Name":"b"}}`,
	} {
		err := strictjson.Decode([]byte(in), &args, strictjson.Default)
		switch {
		case errors.Is(err, strictjson.ErrUnknownMember):
			fmt.Println("no such member:", err)
		case err != nil:
			fmt.Println("refused:", err)
		default:
			fmt.Println(args.Action, args.ID, string(args.Set))
		}
	}
	// Output:
	// update 9007199254740993 {"load":1.50}
	// refused: event_id: 1e3 is not a whole number without fraction and exponent (at byte 30)
	// no such member: Event_ID: unknown member; write it "event_id", names are case-sensitive (at byte 19)
	// refused: set.Name: differs only in case from "name"; send one of them (at byte 37)
}
