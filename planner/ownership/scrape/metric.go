package scrape

import (
	"bytes"
	"strings"
)

// The metrics that are kept; all other lines are passed over.
const (
	metricAppInfo    = "argocd_app_info"
	metricCacheAge   = "argocd_cluster_cache_age_seconds"
	metricConnected  = "argocd_cluster_connection_status"
	metricSeconds    = "argocd_app_reconcile_sum"
	metricReconciles = "argocd_app_reconcile_count"
	metricMemory     = "process_resident_memory_bytes"
	metricObjects    = "argocd_cluster_api_resource_objects"
	metricEvents     = "argocd_cluster_events_total"
)

// wanted reports whether a metric is one that is kept.
func wanted(metric string) bool {
	switch metric {
	case metricAppInfo, metricCacheAge, metricConnected, metricSeconds, metricReconciles, metricMemory, metricObjects, metricEvents:
		return true
	}
	return false
}

// serverLabel is the label by which a metric names the server.
func serverLabel(metric string) string {
	switch metric {
	case metricAppInfo, metricSeconds, metricReconciles:
		return "dest_server"
	}
	return "server"
}

// urlOf is a server as a cluster's Secret has it, without a slash behind it. An Application that writes one names no
// cluster, and every pod shows it: Argo CD finds none by such a URL.
func urlOf(metric, server string) string {
	if strings.HasSuffix(server, "/") && serverLabel(metric) == "dest_server" {
		return ""
	}
	return strings.TrimRight(server, "/")
}

// isController reports whether a metric is one of those that every application-controller has some of.
func isController(name []byte) bool {
	for _, prefix := range []string{"argocd_", "workqueue_", "process_", "go_"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return false
}
