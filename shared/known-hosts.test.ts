import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { knownHostsFile, knownHostsLines } from './known-hosts.ts'

const ED25519 = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`
const RSA = 'ssh-rsa AAAA'

describe('OpenSSH finds host keys', () => {
  test.each([
    { does: 'at port 22 under the bare host', host: 'edge.example', port: 22, lines: [`edge.example ${ED25519}`] },
    {
      does: 'at another port under host and port',
      host: 'edge.example',
      port: 22_222,
      lines: [`[edge.example]:22222 ${ED25519}`],
    },
    { does: 'of an IPv6 address at port 22 without brackets', host: '2001:db8::1', port: 22, lines: [`2001:db8::1 ${ED25519}`] },
    { does: 'of an IPv6 address at another port', host: '2001:db8::1', port: 2222, lines: [`[2001:db8::1]:2222 ${ED25519}`] },
  ])('$does', async ({ host, port, lines }) => {
    expect(knownHostsLines([ED25519], host, port)).toEqual(lines)
    await using directory = await mkdtempDisposable(join(tmpdir(), 'known-hosts-'))
    const file = join(directory.path, 'known_hosts')
    await writeFile(file, knownHostsFile([ED25519], host, port))
    // ssh-keygen -F finds keys like ssh.
    const asked = port === 22 ? host : `[${host}]:${port}`
    expect((await promisify(execFile)('ssh-keygen', ['-F', asked, '-f', file])).stdout).toContain(ED25519)
  })

  test('knownHostsFile ends each line with a line break', () => {
    expect(knownHostsLines([ED25519, RSA], 'edge', 22)).toEqual([`edge ${ED25519}`, `edge ${RSA}`])
    expect(knownHostsFile([ED25519, RSA], 'edge', 22)).toBe(`edge ${ED25519}\nedge ${RSA}\n`)
    expect(knownHostsFile([], 'edge', 22)).toBe('')
  })
})
