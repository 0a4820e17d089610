package storetest_test

import (
	"testing"

	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
)

func TestTheStoreOfTestsKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) (a, b page.Store) { m := storetest.NewMemory(); return m, m })
}
