import { expect } from 'vitest'
import type { Instance } from './answers.ts'
import type { Installation } from '../deployment/installation.ts'

const text = expect.stringMatching(/./) as string

/**
 * Matcher of an instance in the exact form of docs/api.md ("Instances"), without its credentials. `known` replaces the matchers
 * of single fields.
 */
export const shownInstance = ({ region, motor }: Installation, known: Partial<Instance>) => ({
  id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) as string,
  ...{ name: text, user: text, password: null, uri: null },
  isEnabled: true,
  identifier: text,
  host: text,
  port: expect.any(Number) as number,
  region: region.name,
  createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
  motor,
  engineVersion: '15.4',
  expiresAt: null,
  tls: { required: expect.any(Boolean) as boolean, ca: null },
  ...known,
})
