package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// configReads reports whether Argo CD can read a data.config: where it cannot, it does nothing for the cluster,
// whatever replica has it. Nothing of it is kept or copied: it holds the cluster's credentials.
func configReads(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	var config struct {
		Username        quoted `json:"username"`
		Password        quoted `json:"password"`
		BearerToken     quoted `json:"bearerToken"`
		TLSClientConfig struct {
			Insecure   bool         `json:"insecure"`
			ServerName quoted       `json:"serverName"`
			CertData   quotedBase64 `json:"certData"`
			KeyData    quotedBase64 `json:"keyData"`
			CAData     quotedBase64 `json:"caData"`
		} `json:"tlsClientConfig"`
		AWSAuthConfig *struct {
			ClusterName quoted `json:"clusterName"`
			RoleARN     quoted `json:"roleARN"`
			Profile     quoted `json:"profile"`
		} `json:"awsAuthConfig"`
		ExecProviderConfig *struct {
			Command     quoted            `json:"command"`
			Args        []quoted          `json:"args"`
			Env         map[string]quoted `json:"env"`
			APIVersion  quoted            `json:"apiVersion"`
			InstallHint quoted            `json:"installHint"`
		} `json:"execProviderConfig"`
		DisableCompression bool   `json:"disableCompression"`
		ProxyURL           quoted `json:"proxyUrl"`
	}
	return json.Unmarshal(raw, &config) == nil
}

var errOtherType = errors.New("it is of another type")

// quoted is a string that is looked at where it stands.
type quoted struct{}

// UnmarshalJSON accepts any string, and copies none.
func (*quoted) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' && string(raw) != "null" {
		return errOtherType
	}
	return nil
}

// quotedBase64 is bytes that are looked at where they stand.
type quotedBase64 struct{}

// UnmarshalJSON accepts base64 as encoding/json reads it, and copies none.
func (*quotedBase64) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if raw[0] != '"' {
		return errOtherType
	}
	if bytes.IndexByte(raw, '\\') >= 0 { // escaped, as nobody writes it: it is read as it would be, and dropped
		var content []byte
		return json.Unmarshal(raw, &content)
	}
	content := raw[1 : len(raw)-1]
	digits := 0
	for i, c := range content {
		switch {
		case strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", c) >= 0:
			digits++
		case c == '=' && (string(content[i:]) == "=" || string(content[i:]) == "=="):
			return fullGroups(digits+len(content)-i, len(content))
		default:
			return base64.CorruptInputError(i)
		}
	}
	return fullGroups(digits, len(content))
}

func fullGroups(digits, end int) error {
	if digits%4 != 0 {
		return base64.CorruptInputError(end)
	}
	return nil
}
