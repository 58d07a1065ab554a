import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ip = async (...args: string[]) => (await run('ip', args)).stdout

export type Family = 'ipv4' | 'ipv6'
type Addresses = Readonly<Record<Family, string>>

/** Addresses of a virtual link between two networks. */
interface Link {
  /** Addresses of this machine's end. */
  readonly host: Addresses
  /** Addresses of the other end. */
  readonly own: Addresses
  /** Address ranges of the link, which nothing else uses. */
  readonly cidr: Addresses
}

/** Network namespace, which stands for another machine, with a link to this one. Disposing removes it. */
export interface NetworkNamespace extends Link, AsyncDisposable {
  /** Returns the command that runs another command in the namespace. */
  readonly inside: (command: readonly string[]) => readonly string[]
}

const NEEDS =
  'This test makes network namespaces and links them to this machine. It needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN, ' +
  '`ip` (iproute2), `nsenter` (util-linux), and a kernel with veth and IPv6.'

/** Prefix of the names of the namespace and of our end of the link. Interface names have at most 15 characters. */
const nameOf = (index: number) => `mrg-${process.pid}-${index}`
const NAME = /^mrg-(\d+)-\d+$/
let made = 0

/**
 * Creates a network namespace, and removes those of killed processes.
 * @throws Error with the missing requirement when this user or machine cannot; nothing is left then
 */
export async function makeNetworkNamespace(): Promise<NetworkNamespace> {
  const name = nameOf(made++)
  const remains = new AsyncDisposableStack()
  try {
    await removeLeftovers()
    // Removes the namespace of an earlier process with our id.
    await remove(name)
    const link = linkOf(await freeBlock())
    remains.defer(() => remove(name))
    await make(name, link)
    return {
      ...link,
      inside: (command) => ['nsenter', `--net=/run/netns/${name}`, ...command],
      [Symbol.asyncDispose]: () => remains.disposeAsync(),
    }
  } catch (error) {
    await remains.disposeAsync()
    throw new Error(NEEDS, { cause: error })
  }
}

/** Number of blocks in 198.18.0.0/15, which is reserved for network tests (RFC 2544, appendix C.2.2). */
const BLOCKS = 512
const prefixOf = (block: number) => `198.${18 + Math.floor(block / 256)}.${block % 256}`

/** Returns a block to which this machine has no route. */
async function freeBlock(): Promise<number> {
  const block = randomInt(BLOCKS)
  return (await ip('-4', 'route', 'show', 'root', `${prefixOf(block)}.0/24`)) === '' ? block : freeBlock()
}

function linkOf(block: number): Link {
  // Unique local addresses (RFC 4193).
  const [four, six] = [prefixOf(block), `fd72:6d6f:6f72:${(block + 1).toString(16)}:`]
  return {
    host: { ipv4: `${four}.1`, ipv6: `${six}:1` },
    own: { ipv4: `${four}.2`, ipv6: `${six}:2` },
    cidr: { ipv4: `${four}.0/24`, ipv6: `${six}:/64` },
  }
}

async function make(name: string, { host, own }: Link): Promise<void> {
  await ip('netns', 'add', name)
  await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  await bringUp(name, host)
  await bringUp('eth0', own, '-netns', name)
}

async function bringUp(device: string, { ipv4, ipv6 }: Addresses, ...where: string[]): Promise<void> {
  await ip(...where, 'address', 'add', `${ipv4}/24`, 'dev', device)
  // Without duplicate address detection, since the link has no other hosts.
  await ip(...where, 'address', 'add', `${ipv6}/64`, 'dev', device, 'nodad')
  await ip(...where, 'link', 'set', device, 'up')
}

/** Removes the link first: a running program inside would keep the namespace, and with it its end of the link. */
async function remove(name: string): Promise<void> {
  if (existsSync(`/sys/class/net/${name}`)) await ip('link', 'delete', name)
  if (existsSync(`/run/netns/${name}`)) await ip('netns', 'delete', name)
}

async function removeLeftovers(): Promise<void> {
  const namespaces = existsSync('/run/netns') ? await readdir('/run/netns') : []
  for (const name of new Set([...namespaces, ...(await readdir('/sys/class/net'))])) {
    const pid = NAME.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await remove(name)
  }
}
