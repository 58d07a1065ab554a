import { expect, test } from 'vitest'
import { foreignSpec } from './foreign-fields.ts'

const spec = (fields: object) => ({ 'f:spec': fields })
const by = (manager: string, fieldsV1: object, subresource = '') => ({ manager, operation: 'Update', fieldsV1, subresource })
const mine = by('me', spec({ 'f:replicas': {}, 'f:template': { 'f:spec': { 'f:containers': {} } } }))

test.each([
  { does: 'no other manager has written', entries: [mine], foreign: false },
  {
    does: 'a status was written',
    entries: [mine, by('controller', { 'f:status': { 'f:replicas': {} } }, 'status')],
    foreign: false,
  },
  {
    does: 'labels were written',
    entries: [mine, by('kubectl', { 'f:metadata': { 'f:labels': { 'f:x': {} } } })],
    foreign: false,
  },
  {
    does: 'its pods were to be restarted',
    entries: [by('kubectl', spec({ 'f:template': { 'f:metadata': { 'f:annotations': { '.': {}, 'f:restartedAt': {} } } } }))],
    foreign: false,
  },
  { does: 'it was scaled', entries: [mine, by('kubectl', spec({ 'f:replicas': {} }))], foreign: true },
  {
    does: 'a container was added',
    entries: [mine, by('kubectl', spec({ 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"x"}': { '.': {} } } } } }))],
    foreign: true,
  },
  { does: 'there is no record', entries: undefined, foreign: false },
])('another manager owns a part of the spec when $does: $foreign', ({ entries, foreign }) => {
  expect(foreignSpec(entries, 'me')).toBe(foreign)
})
