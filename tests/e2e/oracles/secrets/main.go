// Secrets as the rules of gitleaks describe them: one a line of JSON on standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/lucasjones/reggen"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// sample is a line that a rule finds a secret in.
type sample struct {
	Rule   string `json:"rule"`
	Line   string `json:"line"`
	Secret string `json:"secret"`
}

// each is how many samples a rule gives.
const each = 5

// tries is how often a text is drawn that the rule itself does not find: \b and alternatives are only roughly drawn.
const tries = 200

func rules() map[string]config.Rule {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		panic(err)
	}
	var read config.ViperConfig
	if err := v.Unmarshal(&read); err != nil {
		panic(err)
	}
	known, err := read.Translate()
	if err != nil {
		panic(err)
	}
	return known.Rules
}

// secret is the part of the line that the rule calls the secret. As gitleaks does: the group that the rule names, else
// the first that is not empty, else all of it.
func secret(rule config.Rule, line string) string {
	groups := rule.Regex.FindStringSubmatch(line)
	if len(groups) == 0 {
		return ""
	}
	if rule.SecretGroup > 0 && rule.SecretGroup < len(groups) {
		return groups[rule.SecretGroup]
	}
	for _, group := range groups[1:] {
		if group != "" {
			return group
		}
	}
	return groups[0]
}

// isWritten says whether people write such a line: (?i) also draws a Kelvin sign for a K, and \s a form feed.
func isWritten(line string) bool {
	for _, char := range line {
		if char < ' ' || char > '~' {
			return false
		}
	}
	return true
}

// forms are how people write a setting: in a shell, in YAML, in JSON and in a file of properties.
var forms = []string{"export %s_TOKEN=%s", "%s_token: %s", `{"%s_token": "%s"}`, "%s_token = '%s'"}

// isNamed says whether the rule goes by the name in front of the secret, and not by its looks.
func isNamed(rule config.Rule) bool {
	return strings.Contains(rule.Regex.String(), `[\w.-]{0,50}?(?`)
}

// lines are what the rule finds the secret in, as people write it.
func lines(rule config.Rule, drawn, own string) []string {
	if !isNamed(rule) {
		return []string{drawn}
	}
	var found []string
	for _, keyword := range rule.Keywords {
		for _, form := range forms {
			line := fmt.Sprintf(form, keyword, own)
			if secret(rule, line) == own {
				found = append(found, line)
			}
		}
	}
	return found
}

func main() {
	known := rules()
	names := make([]string, 0, len(known))
	for name, rule := range known {
		if rule.Regex != nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	out := json.NewEncoder(os.Stdout)
	for at, name := range names {
		rule := known[name]
		// Nobody writes gLsA_, though a rule may find it.
		generator, err := reggen.NewGenerator(strings.ReplaceAll(rule.Regex.String(), "(?i)", ""))
		if err != nil {
			panic(name + ": " + err.Error())
		}
		generator.SetSeed(int64(at))
		for found, tried := 0, 0; found < each && tried < tries; tried++ {
			drawn := generator.Generate(12)
			own := secret(rule, drawn)
			if own == "" || !isWritten(drawn) && !isNamed(rule) || !isWritten(own) {
				continue
			}
			for _, line := range lines(rule, drawn, own) {
				found++
				if err := out.Encode(sample{name, line, own}); err != nil {
					panic(err)
				}
			}
		}
	}
}
