package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestALeaderThatIsStoppedFinishesInFiveSeconds, and no later, or a silent API server would keep its Lease from the next one.
func TestALeaderThatIsStoppedFinishesInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		finishing, end := finishing(ctx)
		defer end()
		told := time.Now()
		stop()
		synctest.Wait()
		if finishing.Err() != nil {
			t.Fatal("it ends at once")
		}
		<-finishing.Done()
		if took := time.Since(told); took != 5*time.Second {
			t.Errorf("it ends after %s", took)
		}
	})
}

// TestACycleThatNobodyStopsLeavesNothingBehind: its context ends with it.
func TestACycleThatNobodyStopsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		finishing, end := finishing(ctx)
		if end(); finishing.Err() == nil {
			t.Error("it goes on")
		}
		stop()
	})
}
