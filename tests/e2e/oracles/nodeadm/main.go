// What nodeadm makes of user data: one case a line of JSON on standard input, one answer a line on standard output.
//
// nodeadm's packages are internal to its module. The tests lay this file into a copy of that module, as cmd/oracle.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/api"
	"github.com/awslabs/amazon-eks-ami/nodeadm/internal/configprovider"
)

type answer struct {
	Error  string          `json:"error"`
	Config *api.NodeConfig `json:"config"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var found answer
		if config, err := configprovider.ParseMaybeMultipart([]byte(text)); err != nil {
			found.Error = err.Error()
		} else {
			found.Config = config
		}
		if err := out.Encode(found); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
