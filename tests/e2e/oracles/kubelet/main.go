// What the kubelet's own code makes of a command line: one case a line of JSON on standard input, one answer a line on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// answer is where the kubelet stands before it reads its configuration file.
type answer struct {
	// Flags are the flags in their order, each with its value.
	Flags [][2]string `json:"flags"`
	// Stray are the words that are no flags; the kubelet exits over the first.
	Stray []string `json:"stray"`
	// Error is what the kubelet prints as it exits over a flag.
	Error  string            `json:"error"`
	Taints []v1.Taint        `json:"taints"`
	Labels map[string]string `json:"labels"`
	// Refused is what the kubelet prints as it exits over its labels.
	Refused string `json:"refused"`
}

// defaults are made once: they take longer than all the rest.
var defaults = func() *config.KubeletConfiguration {
	made, err := options.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}
	return made
}()

// flagSet is that of cmd/kubelet/app/server.go NewKubeletCommand.
func flagSet() (*pflag.FlagSet, *options.KubeletFlags, *config.KubeletConfiguration) {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags, config := options.NewKubeletFlags(), defaults.DeepCopy()
	flags.AddFlags(set)
	options.AddKubeletConfigFlags(set, config)
	options.AddGlobalFlags(set)
	set.BoolP("help", "h", false, "")
	return set, flags, config
}

func read(words []string) answer {
	found := answer{Flags: [][2]string{}, Labels: map[string]string{}}
	set, flags, config := flagSet()
	if err := set.ParseAll(words, func(flag *pflag.Flag, value string) error {
		found.Flags = append(found.Flags, [2]string{flag.Name, value})
		return set.Set(flag.Name, value)
	}); err != nil {
		found.Error = err.Error()
		return found
	}
	found.Stray, found.Labels, found.Taints = set.Args(), flags.NodeLabels, config.RegisterWithTaints
	if err := options.ValidateKubeletFlags(flags); err != nil {
		found.Refused = err.Error()
	}
	return found
}

// printFlags prints every flag, and whether it takes no second word.
func printFlags() error {
	takesNone := map[string]bool{}
	set, _, _ := flagSet()
	set.VisitAll(func(flag *pflag.Flag) { takesNone[flag.Name] = flag.NoOptDefVal != "" })
	return json.NewEncoder(os.Stdout).Encode(takesNone)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "flags" {
		if err := printFlags(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var words []string
		if err := json.Unmarshal(lines.Bytes(), &words); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(read(words)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
