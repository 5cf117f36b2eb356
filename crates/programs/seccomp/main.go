// What a container runtime means by the seccomp profile RuntimeDefault, for a process without capabilities.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func main() {
	process := &specs.Process{Capabilities: &specs.LinuxCapabilities{}}
	if err := json.NewEncoder(os.Stdout).Encode(seccomp.DefaultProfile(&specs.Spec{Process: process})); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
