package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
)

const (
	callTimeout  = 20 * time.Second
	totalTimeout = 60 * time.Second
)

// removePods stops and removes every pod sandbox of a container runtime, and so
// its containers, network namespace and address. crictl would do this too; this
// way there is no second tool to build.
func removePods(endpoint string) error {
	ctx, cancel := context.WithTimeout(context.Background(), totalTimeout)
	defer cancel()
	runtime, err := cri.NewRemoteRuntimeService(ctx, endpoint, callTimeout, noop.NewTracerProvider(), false)
	if err != nil {
		return err
	}
	pods, err := runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{})
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	failures := make([]error, len(pods))
	for i, pod := range pods {
		group.Go(func() {
			err := runtime.StopPodSandbox(ctx, pod.Id)
			if err == nil {
				err = runtime.RemovePodSandbox(ctx, pod.Id)
			}
			if err != nil {
				failures[i] = fmt.Errorf("pod %s/%s: %w", pod.Metadata.Namespace, pod.Metadata.Name, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	fmt.Printf("removed %d pods\n", len(pods))
	return nil
}
