import { closeOf } from '../../support/edge/raw-http.ts'
import { describe, expect, test, vi } from 'vitest'
import { startEchoTunnels } from '../../support/edge/channels.ts'
import { freshHostname, startSshEdge, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const { edge, echo, sessionOf, served, echoed, recordsOf } = await startEchoTunnels()
const never = new AbortController().signal

describe('a login', () => {
  test.each([
    { type: 'ed25519', options: [] },
    { type: 'ecdsa', options: ['-b', '256'] },
    { type: 'ecdsa', options: ['-b', '521'] },
    { type: 'rsa', options: ['-b', '2048'] },
  ])('by a key of type $type $options serves its tunnel', async ({ type, options }) => {
    const hostname = freshHostname()
    const publicKey = edge.makeKey(hostname, type, ...options)
    edge.routes.set(hostname, { authMode: 'key', authorizedKeys: [publicKey] })
    const client = edge.ssh({ user: hostname, key: hostname, args: ['-N', '-R', `${hostname}:80:127.0.0.1:${echo.port}`] })
    const session = await sessionOf(hostname)
    expect(await echoed(session)).toBe('ping')
    expect(client.output.text).toContain(`https://${hostname}.tunnel.localhost`)
    client.kill()
    await client.exited
    await vi.waitFor(() => expect(recordsOf(hostname)).toHaveLength(2), SOON)
    const [connect, disconnect] = recordsOf(hostname)
    expect(connect).toMatchObject({
      type: 'connect',
      authMethod: 'key',
      clientIp: '127.0.0.1',
      sessionId: session.id,
      durationMs: null,
    })
    expect(connect?.keyFingerprint).toMatch(/^SHA256:/)
    expect(disconnect).toMatchObject({ type: 'disconnect', reason: 'client_disconnected', sessionId: session.id })
    expect(disconnect?.durationMs).toBeGreaterThan(0)
  })

  test.each([
    { does: 'with the hostname as user', user: (hostname: string) => hostname, bind: (hostname: string) => hostname },
    { does: 'with any user, for the hostname of its forward', user: () => 'anyone', bind: (hostname: string) => hostname },
    { does: 'with any user, for the tunnel of the password', user: () => 'root', bind: () => '' },
  ])('by a temporary password $does', async ({ user, bind }) => {
    const hostname = freshHostname()
    const { password, routed } = temporaryPassword()
    edge.routes.set(hostname, { authMode: 'token' }, [routed])
    const client = edge.ssh({ user: user(hostname), password, args: ['-N', '-R', `${bind(hostname)}:80:127.0.0.1:${echo.port}`] })
    expect(await echoed(await sessionOf(hostname))).toBe('ping')
    client.kill()
    await client.exited
    expect(recordsOf(hostname)[0]).toMatchObject({
      type: 'connect',
      authMethod: 'token',
      passwordId: routed.id,
      keyFingerprint: null,
    })
  })

  const other = edge.makeKey('other')
  const expired = temporaryPassword(-1)
  test.each([
    { does: 'an unknown hostname', config: undefined, reason: undefined },
    { does: 'a key of another tunnel', config: { authorizedKeys: [other] }, reason: 'key' },
    { does: 'an address that is not listed', config: { sshIPWhitelist: ['203.0.113.0/24'] }, reason: 'ip_denied' },
    { does: 'another authentication mode', config: { authMode: 'token' as const }, reason: 'auth_mode' },
    { does: 'a wrong password', config: { authMode: 'token' as const }, password: 'mt_wrong', reason: 'no_credential' },
    {
      does: 'an expired password',
      config: {},
      password: expired.password,
      reason: 'expired',
      sentence: 'this password has expired',
    },
  ])('with $does is rejected with a message', async ({ config, password, reason, sentence }) => {
    const hostname = freshHostname()
    await using own = await startSshEdge()
    if (config) own.routes.set(hostname, { authorizedKeys: [own.publicKey], ...config }, [expired.routed])
    const client = own.ssh({
      user: hostname,
      args: ['-N', '-R', '80:127.0.0.1:9'],
      ...(password === undefined ? {} : { password }),
    })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence ?? 'Mooring: this login is not accepted.')
    expect(client.output.text).toContain('Permission denied (publickey,password)')
    await vi.waitFor(() => expect(own.records.map((record) => record.reason)).toEqual(reason ? [reason] : []), SOON)
    if (reason) expect(own.records[0]).toMatchObject({ type: 'refused', tunnel: `uid-${hostname}`, clientIp: '127.0.0.1' })
  })

  test('by key succeeds after many failed logins, and after many other keys', async () => {
    await using own = await startSshEdge()
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    own.makeKey('wrong')
    const tries = Array.from({ length: 20 }, () => own.ssh({ user: hostname, key: 'wrong', args: ['-N'] }).exited)
    await Promise.all(tries)
    const others = Array.from({ length: 12 }, (_, index) => own.file(`other-${index}`))
    for (const file of others) own.makeKey(file.slice(file.lastIndexOf('/') + 1))
    const before = others.flatMap((file) => ['-i', file])
    own.ssh({ user: hostname, args: [...before, '-N', '-R', '80:127.0.0.1:9'] })
    expect(await own.sessions.waitFor(hostname, SOON.timeout, never)).toBeDefined()
  })

  test('is rejected above the session limit of the tunnel', async () => {
    await using own = await startSshEdge({ sessionsPerTunnel: 1 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    own.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
    await own.sessions.waitFor(hostname, SOON.timeout, never)
    const second = own.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
    expect(await second.exited).toBe(255)
    expect(second.output.text).toContain('this tunnel has reached its limit of connections')
    const [first] = own.records
    const { keyFingerprint = null } = first ?? {}
    expect(keyFingerprint).toMatch(/^SHA256:/)
    expect(own.records.at(-1)).toMatchObject({ type: 'refused', reason: 'too_many_sessions', keyFingerprint })
  })

  test('that exceeds loginGraceMs ends the connection', async () => {
    await using own = await startSshEdge({ loginGraceMs: 100 })
    const { connect } = await import('node:net')
    const socket = connect(own.port, '127.0.0.1')
    const closed = closeOf(socket)
    socket.resume()
    await closed
  })
})

describe('a change of the tunnel', () => {
  test.each([
    {
      does: 'its key is removed',
      config: { authorizedKeys: [] },
      reason: 'key_removed',
      sentence: 'was removed from the tunnel',
    },
    {
      does: 'its source address is removed',
      config: { sshIPWhitelist: ['203.0.113.1'] },
      reason: 'ip_denied',
      sentence: 'from your address',
    },
    {
      does: 'its authentication mode is disabled',
      config: { authMode: 'token' as const },
      reason: 'auth_mode',
      sentence: 'this kind of login',
    },
    {
      does: 'the tunnel is deleted',
      config: undefined,
      reason: 'tunnel_deleted',
      sentence: 'this tunnel was deleted, or has expired',
    },
  ])('ends a session when $does', async ({ config, reason, sentence }) => {
    const { hostname, client } = await served()
    if (config) edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
    else edge.routes.delete(hostname)
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason })
  })

  test.each([
    { does: 'is revoked', left: () => [], reason: 'password_revoked' },
    { does: 'expires', left: (routed: object) => [{ ...routed, expiresAt: Date.now() } as never], reason: 'password_expired' },
  ])('ends a session whose password $does', async ({ left, reason }) => {
    const hostname = freshHostname()
    const { password, routed } = temporaryPassword()
    edge.routes.set(hostname, {}, [routed])
    const client = edge.ssh({ user: hostname, password, args: ['-N', '-R', '80:127.0.0.1:9'] })
    await sessionOf(hostname)
    edge.routes.set(hostname, {}, left(routed))
    expect(await client.exited).toBe(255)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason })
  })

  test('keeps a session that it does not concern', async () => {
    const { hostname, session } = await served()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], httpsOnly: true })
    expect(await echoed(session)).toBe('ping')
  })
})
