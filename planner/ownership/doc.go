// Package ownership says which application-controller replica really has each cluster, from what the pods themselves
// show, and judges which clusters nobody has (orphaned) and which several have (doubled).
//
// What the pods' metrics are worth, as read in argo-cd v3.2.11 and measured on it:
//
//   - argocd_app_info is made at the scrape from the Applications that the pod is responsible for. It moves from the old
//     owner to the new one at once, before any work is done, so it says who owns a cluster (Owners). A pod serves its
//     metrics only after it has loaded its Applications, so a pod that answers has told all.
//   - argocd_cluster_cache_age_seconds and argocd_cluster_connection_status are kept for 30 s. An age of -1 is a cluster that
//     was never read, and its connection status is 1 all the same: only an age of 0 or more with a status of 1 is a cluster
//     at work. That is Live, which therefore comes up to 30 s after the fact, and counts only for Owners: the loser shows its
//     last gauges for up to 30 s more. Whoever waits for a wave takes "it owns it" from Owners and "it works on it" from Live.
//   - An Application whose destination Argo CD cannot find is shown by every pod with an empty dest_server: nobody's.
//   - An orphaned cluster looks exactly like one without Applications: no pod shows it. Only memory (somebody had it before) or
//     the Applications themselves tell them apart, so Idle is never concluded from one look.
//   - Counters stay with the old owner for as long as its process lives.
//
// Pods are asked one after the other while clusters move, so one look may show a cluster twice or not at all; a verdict
// needs the same picture over its grace period, counted on the clock of the samples. Package podlist lists the
// pods, and package scrape asks them; this one is a function of values.
package ownership
