// What Karpenter's AWS provider makes of user data: one case a line of JSON on standard input, one answer a line on standard output.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap/mime"
)

type question struct {
	Family string `json:"family"`
	Text   string `json:"text"`
}

type answer struct {
	// Error keeps the instance from being launched.
	Error string `json:"error"`
	// Script is the user data that the instance gets.
	Script string `json:"script"`
	// Parts are the parts of the user's own text, as Karpenter's MIME package reads them out of Script.
	Parts []mime.Entry `json:"parts"`
}

func bootstrapper(family string, options bootstrap.Options) bootstrap.Bootstrapper {
	switch family {
	case "AL2023":
		return bootstrap.Nodeadm{Options: options}
	case "AL2":
		return bootstrap.EKS{Options: options}
	case "Bottlerocket":
		return bootstrap.Bottlerocket{Options: options}
	}
	panic(family)
}

func read(asked question) answer {
	options := bootstrap.Options{
		ClusterName:     "cluster-of-karpenter",
		ClusterEndpoint: "https://endpoint-of-karpenter",
		ClusterCIDR:     lo.ToPtr("10.100.0.0/16"),
		CABundle:        lo.ToPtr("Y2E="),
		// As its resolver fills it: the families of flags and settings take the first, nodeadm's takes the second.
		KubeletConfig: &v1.ParsedKubeletConfig{
			MaxPods:    lo.ToPtr(intstr.FromInt32(29)),
			ClusterDNS: []string{"10.100.0.10"},
		},
		UnparsedKubeletConfig: v1.KubeletConfiguration{
			"maxPods":    v1.JSONValue(29),
			"clusterDNS": v1.JSONValue([]string{"10.100.0.10"}),
		},
		Labels:         map[string]string{"of": "karpenter"},
		CustomUserData: lo.ToPtr(asked.Text),
	}
	encoded, err := bootstrapper(asked.Family, options).Script(context.Background())
	if err != nil {
		return answer{Error: err.Error()}
	}
	script, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return answer{Error: err.Error()}
	}
	found := answer{Script: string(script)}
	if asked.Family != "Bottlerocket" {
		parts, err := mime.NewArchive(found.Script)
		if err != nil {
			return answer{Error: "what Karpenter wrote: " + err.Error()}
		}
		// The last part is Karpenter's own.
		found.Parts = parts[:len(parts)-1]
	}
	return found
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(read(asked)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
