import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

/** Creates and drops ciphers as short connections do, with turns of the event loop between them in which the collector runs. */
const CHURN = `
  const { bindingAvailable } = require('ssh2/lib/protocol/crypto.js')
  const { AESGCMCipher, AESGCMDecipher } = bindingAvailable ? require('ssh2/lib/protocol/crypto/build/Release/sshcrypto.node') : {}
  const { randomBytes } = require('node:crypto')
  let left = 40
  const timer = setInterval(() => {
    for (let count = 0; bindingAvailable && count < 1_000; count++) {
      new AESGCMCipher('aes-128-gcm', randomBytes(16), randomBytes(12)).free()
      new AESGCMDecipher('aes-128-gcm', randomBytes(16), randomBytes(12)).free()
    }
    if (--left === 0) clearInterval(timer)
  }, 1)
`

test('garbage-collected native ciphers do not crash the process', () => {
  const { status, signal, stderr } = spawnSync(process.execPath, ['--eval', CHURN], { encoding: 'utf8' })
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' })
})
