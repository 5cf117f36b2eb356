// A container runtime that only says how it is: what a kubelet needs to go on.
//
// `runtime SOCKET` is ready, with its network; `runtime SOCKET NetworkReady` is not ready in that, `… Status` fails when
// it is asked for that, `… PullImage` pulls none, `… CRI` is no runtime at all.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

func main() {
	if slices.Contains(os.Args[2:], "CRI") {
		listener, err := net.Listen("unix", os.Args[1])
		check(err)
		check(grpc.NewServer().Serve(listener))
	}
	runtime := fake.NewFakeRemoteRuntime()
	check(runtime.Start("unix://" + os.Args[1]))
	for _, condition := range runtime.RuntimeService.FakeStatus.Conditions {
		condition.Status = !slices.Contains(os.Args[2:], condition.Type)
	}
	runtime.ImageService.SetFakeFilesystemUsage([]*runtimeapi.FilesystemUsage{{
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}})
	// Each error is given once.
	for range 1000 {
		if slices.Contains(os.Args[2:], "Status") {
			runtime.RuntimeService.InjectError("Status", errors.New("not now"))
		}
		if slices.Contains(os.Args[2:], "PullImage") {
			runtime.ImageService.InjectError("PullImage", errors.New("dial tcp 10.0.3.7:443: i/o timeout"))
		}
	}
	select {}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
