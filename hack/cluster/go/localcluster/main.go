// localcluster is etcd, the Kubernetes components and kubectl in one static
// binary: the packages they share are compiled and linked once. The component
// is the first argument (localcluster kubelet --config=...).
package main

import (
	"context"
	"fmt"
	"os"
	_ "time/tzdata" // time zones of CronJobs, on machines without a zone database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = "usage: localcluster etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kube-proxy|kubectl|remove-pods [ARGUMENTS]"

func main() {
	if len(os.Args) < 2 {
		fail(usage)
	}
	// Each component reads os.Args itself, with its own name first.
	os.Args = os.Args[1:]
	if command := component(os.Args[0]); command != nil {
		os.Exit(cli.Run(command))
	}
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	case "remove-pods":
		if len(os.Args) != 2 {
			fail("usage: localcluster remove-pods unix:///path/to/containerd.sock")
		}
		if err := removePods(os.Args[1]); err != nil {
			fail(err)
		}
	default:
		fail(usage)
	}
}

func component(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kube-proxy":
		return proxy.NewProxyCommand()
	}
	return nil
}

func fail(message any) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
