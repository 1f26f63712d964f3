"""What tools work on: one sshd for each host, on addresses of this machine only, and the connections to them."""
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time

from workload import address

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def processor_s():
    """Processor time of everything in the control group of `apart`, agents and servers included; nothing without one."""
    try:
        with open("/sys/fs/cgroup/cpuacct/holdfast-bench/cpuacct.usage") as file:
            return int(file.read()) / 1e9
    except OSError:
        return float("nan")


class Machines:
    def __init__(self, base, count, port):
        self.place, self.port, self.processes = os.path.join(base, "ssh"), port, []
        self.client = os.path.join(self.place, "client")
        os.makedirs(self.place, mode=0o700, exist_ok=True)
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host", "key"):
            if not os.path.exists(f"{self.place}/{key}"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.place}/{key}"], check=True)
        with open(f"{self.place}/server", "w") as file:
            file.write(f"HostKey {self.place}/host\nAuthorizedKeysFile {self.place}/key.pub\nStrictModes no\nUsePAM no\n"
                       "PasswordAuthentication no\nUseDNS no\nMaxStartups 500\nMaxSessions 100\nPrintMotd no\n"
                       "PrintLastLog no\nLogLevel ERROR\nPidFile none\nSubsystem sftp internal-sftp\n")
        with open(self.client, "w") as file:
            file.write(f"Host *\n  User {getpass.getuser()}\n  Port {port}\n  IdentityFile {self.place}/key\n"
                       "  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
                       f"  ControlMaster auto\n  ControlPath {self.place}/to-%h\n  ControlPersist 600\n")
        # A shell reads its start-up file for each ssh command; whatever this machine has there is none of ours.
        startup = os.path.expanduser("~/.bashrc")
        hide = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', startup]
        hide = hide if os.path.exists(startup) else []
        server = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        for host in range(count):
            listen = f"ListenAddress={address(host)}:{port}"
            command = [*hide, server, "-D", "-f", f"{self.place}/server", "-o", listen]
            self.processes.append(subprocess.Popen(command, start_new_session=True, **QUIET))
        for host in range(count):
            self.await_host(address(host))

    def await_host(self, host):
        for _ in range(400):
            try:
                return socket.create_connection((host, self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"no sshd at {host}")

    def connect(self, hosts):
        """Opens connections that stay."""
        for first in range(0, len(hosts), 16):
            commands = [["ssh", "-n", "-F", self.client, host, "true"] for host in hosts[first:first + 16]]
            for process in [subprocess.Popen(command, **QUIET) for command in commands]:
                process.wait(60)

    def disconnect(self):
        hosts = [name[3:] for name in os.listdir(self.place) if name.startswith("to-")]
        commands = [["ssh", "-F", self.client, "-O", "exit", host] for host in hosts]
        for process in [subprocess.Popen(command, **QUIET) for command in commands]:
            process.wait(60)

    def close(self):
        self.disconnect()
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()
