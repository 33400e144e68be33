package apiserver

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Crowd is so many managers of the same fields of an object, as server-side apply notes them: what anybody who may
// update an object can put into it, so that each write of it takes the API server long.
func Crowd(apiVersion, fields string, managers int) []metav1.ManagedFieldsEntry {
	crowd := make([]metav1.ManagedFieldsEntry, managers)
	for n := range crowd {
		crowd[n] = metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("%0128d", n),
			Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			Time: &metav1.Time{Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}}
	}
	return crowd
}
