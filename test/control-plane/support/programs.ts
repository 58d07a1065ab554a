import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'

/** Files and ports of one control plane. */
export interface Layout {
  readonly directory: string
  /** Directory of the Kubernetes programs. */
  readonly binaries: string
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  readonly etcdPort: number
  readonly etcdPeerPort: number
  readonly apiPort: number
  /** Bearer token of the administrator. */
  readonly token: string
}

const LOOPBACK = '127.0.0.1'

export function serviceAccountKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'sec1', format: 'pem' }).toString()
}

export function etcd({ directory, binaries, etcdPort, etcdPeerPort }: Layout): ProgramDeps {
  const client = `http://${LOOPBACK}:${etcdPort}`
  const peer = `http://${LOOPBACK}:${etcdPeerPort}`
  return {
    file: join(binaries, 'etcd'),
    log: join(directory, 'etcd.log'),
    args: [
      `--data-dir=${join(directory, 'etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ],
  }
}

export function apiServer({ directory, binaries, etcdPort, apiPort }: Layout): ProgramDeps {
  return {
    file: join(binaries, 'kube-apiserver'),
    log: join(directory, 'kube-apiserver.log'),
    args: [
      `--etcd-servers=http://${LOOPBACK}:${etcdPort}`,
      `--bind-address=${LOOPBACK}`,
      `--advertise-address=${LOOPBACK}`,
      `--secure-port=${apiPort}`,
      `--cert-dir=${directory}`,
      `--token-auth-file=${join(directory, 'tokens.csv')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${join(directory, 'sa.key')}`,
      `--service-account-signing-key-file=${join(directory, 'sa.key')}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      '--authorization-mode=RBAC',
      '--endpoint-reconciler-type=none',
      // Also the time for which the API server waits for watches to end after SIGTERM.
      '--request-timeout=15s',
      // No controller creates service accounts here; with this plugin, Secrets and pods would wait for them.
      '--disable-admission-plugins=ServiceAccount',
    ],
  }
}

export function controllerManager({ directory, binaries, kubeconfig }: Layout): ProgramDeps {
  return {
    file: join(binaries, 'kube-controller-manager'),
    log: join(directory, 'kube-controller-manager.log'),
    args: [
      `--kubeconfig=${kubeconfig}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--kube-api-qps=500',
      '--kube-api-burst=1000',
      '--controllers=namespace-controller,garbage-collector-controller',
    ],
  }
}

/** Command of a {@link program}. */
export interface ProgramDeps {
  readonly file: string
  readonly args: readonly string[]
  /** File to which the output of the program is appended. */
  readonly log: string
}

/** Program that can be stopped and started again. */
export interface Program extends AsyncDisposable {
  start(): Promise<Program>
  signal(signal: NodeJS.Signals): void
  /** Sends the signal and resolves when the program has ended. */
  stop(signal: NodeJS.Signals): Promise<void>
}

/** Creates a program without starting it. The program ends with this process, even when this process is killed. */
export function program({ file, args, log }: ProgramDeps): Program {
  let child: ChildProcess | undefined

  async function stop(signal: NodeJS.Signals): Promise<void> {
    const running = child
    if (running?.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    await ended
  }

  const self: Program = {
    async start() {
      const output = await open(log, 'a')
      child = spawn('setpriv', ['--pdeathsig', 'KILL', file, ...args], { stdio: ['ignore', output.fd, output.fd] })
      await once(child, 'spawn')
      await output.close()
      return self
    },
    signal(signal) {
      child?.kill(signal)
    },
    stop,
    [Symbol.asyncDispose]: () => stop('SIGKILL'),
  }
  return self
}
