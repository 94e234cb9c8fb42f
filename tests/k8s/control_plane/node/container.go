// The one container of a Pod: a process that is the first of its own process namespace, as in a real
// container. So its end ends everything that was exec'd there, and SIGTERM does nothing to a first
// process that does not handle it, as `sleep`.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/utils/exec"
)

// fault is why a test has ended a container.
type fault string

const (
	none      fault = ""
	evicted   fault = "Evicted"
	oomKilled fault = "OOMKilled"
)

const (
	// A Pod sees this machine's files, and what it writes is its own, in memory.
	inOwnFolders = `mount -t tmpfs tmpfs /tmp; cd /tmp; mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work root
mount -t proc proc root/proc; mount --rbind /dev root/dev; mount --rbind /sys root/sys
for folder in tmp $VOLUMES; do
  mkdir -p "root/$folder"; mount -t tmpfs -o mode=1777 tmpfs "root/$folder"
done
hostname "$HOSTNAME"; echo up >&3; exec chroot --userspec="$USER_ID:$USER_ID" root "$@" 3>&-`
	killed = signalled + int(syscall.SIGKILL)
)

type container struct {
	id          string
	image       string
	user        int64
	pid         int // of its first process
	environment []string
	started     meta.Time
	ended       chan struct{}
	code        int // set before `ended` is closed

	lock   sync.Mutex
	fault  fault
	killed bool
}

// startContainer runs a Pod's command on a host. It returns once the command runs.
func startContainer(host host, pod *core.Pod, restarts int32) (*container, error) {
	spec := pod.Spec.Containers[0]
	argv := append(append([]string{}, spec.Command...), spec.Args...)
	if len(argv) == 0 {
		argv = []string{"sleep", "infinity"}
	}
	enter := []string{"--target", host.pid, "--net", "--pid", "--mount", "--",
		"unshare", "--pid", "--mount", "--uts", "--fork", "--kill-child", "sh", "-ec", inOwnFolders, "sh"}
	command := exec.Command("nsenter", append(enter, argv...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c := &container{
		id: fmt.Sprintf("%s-%d", pod.UID, restarts), image: spec.Image, user: userOf(pod),
		environment: environmentOf(pod), started: meta.Now(), ended: make(chan struct{}),
	}
	own := []string{fmt.Sprintf("USER_ID=%d", c.user), "VOLUMES=" + volumesOf(spec)}
	command.Env, command.Stderr = append(own, c.environment...), os.Stderr
	if err := startAndRead(command); err != nil {
		return nil, err
	}
	// `nsenter` waits for `unshare`, and that for the container's first process.
	c.pid = childOf(childOf(command.Process.Pid))
	go func() {
		c.code = codeOf(command.Wait())
		if c.wasKilled() { // which `unshare` cannot tell
			c.code = killed
		}
		close(c.ended)
	}()
	return c, nil
}

func environmentOf(pod *core.Pod) []string {
	environment := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "HOSTNAME=" + pod.Name}
	for _, variable := range pod.Spec.Containers[0].Env {
		environment = append(environment, variable.Name+"="+variable.Value)
	}
	return environment
}

func userOf(pod *core.Pod) int64 {
	if context := pod.Spec.SecurityContext; context != nil && context.RunAsUser != nil {
		return *context.RunAsUser
	}
	return 0
}

// volumesOf returns the paths of a container's volumes, which are all empty folders.
func volumesOf(spec core.Container) string {
	var paths []string
	for _, mount := range spec.VolumeMounts {
		paths = append(paths, mount.MountPath)
	}
	return strings.Join(paths, " ")
}

// startAndRead starts a command, and waits until it says something on its file descriptor 3.
func startAndRead(command *exec.Cmd) error {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	command.ExtraFiles = []*os.File{theirs}
	err = command.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	_, err = ours.Read(make([]byte, 1))
	return err
}

func childOf(pid int) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var child int
	fmt.Sscan(string(children), &child)
	return child
}

// codeOf returns an exit code as a shell counts it: 128 and the signal's number for what a signal
// has ended.
func codeOf(err error) int {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return 0
	}
	if status := ended.Sys().(syscall.WaitStatus); status.Signaled() {
		return signalled + int(status.Signal())
	}
	return ended.ExitCode()
}

// end kills a container, and remembers why.
func (c *container) end(why fault) {
	c.lock.Lock()
	c.fault, c.killed = why, true
	c.lock.Unlock()
	c.signal(syscall.SIGKILL)
}

func (c *container) why() fault {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.fault
}

func (c *container) wasKilled() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.killed
}

func (c *container) isOver() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *container) signal(number syscall.Signal) {
	if !c.isOver() { // then its pid may be another's
		syscall.Kill(c.pid, number)
	}
}

// command returns what runs a command in the container.
func (c *container) command(argv []string) (*exec.Cmd, error) {
	if argv[0] == "sh" && strings.Contains(c.image, "without-sh") {
		return nil, fmt.Errorf("failed to exec in container: failed to start exec %q: OCI runtime exec "+
			"failed: exec failed: unable to start container process: exec: \"sh\": executable file not "+
			"found in $PATH: unknown", c.id)
	}
	user := fmt.Sprint(c.user)
	enter := []string{"--target", fmt.Sprint(c.pid), "--net", "--pid", "--mount", "--uts", "--root", "--wd",
		"--setuid", user, "--setgid", user, "--"}
	command := exec.Command("nsenter", append(enter, argv...)...)
	command.Env = c.environment
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command, nil
}

// exitError returns what the protocol of exec can carry.
func exitError(err error) error {
	if code := codeOf(err); code != 0 {
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return nil
}
