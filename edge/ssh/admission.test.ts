import { expect, test } from 'vitest'
import { LoginQueue, type Applicant } from './admission.ts'

const limits = { handshakesPerSource: 2, giveWayMs: 5_000 }

function open(isSlow: (source: string) => boolean = () => false) {
  const events: string[] = []
  const admission = new LoginQueue({ limits, isSlow })
  const applicant = (name: string, began = 0, sourceKey = 'a'): Applicant => {
    const self: Applicant = {
      ...{ sourceKey, began },
      begin: () => void events.push(`${name} begins`),
      giveWay() {
        events.push(`${name} gives way`)
        admission.leave(self)
      },
    }
    return self
  }
  return { admission, applicant, events }
}

test('each source has its own slots', () => {
  const { admission, applicant, events } = open()
  for (const name of ['x', 'y']) admission.enter(applicant(name))
  expect([admission.hasSlot('a', 4_999), admission.hasSlot('b', 4_999)]).toEqual([false, true])
  expect(events).toEqual(['x begins', 'y begins'])
})

test('the oldest connection is closed for a new one once it has had its time', () => {
  const { admission, applicant, events } = open()
  admission.enter(applicant('x', 0))
  admission.enter(applicant('y', 1_000))
  expect(admission.hasSlot('a', 5_000)).toBe(true)
  admission.enter(applicant('z', 5_000))
  expect(admission.hasSlot('a', 5_000)).toBe(false)
  expect(events).toEqual(['x begins', 'y begins', 'x gives way', 'z begins'])
})

test('connections of a slow source begin in order, a number at a time, and ended ones never begin', () => {
  const { admission, applicant, events } = open((source) => source === 'a')
  const all = ['u', 'v', 'w', 'x'].map((name) => applicant(name))
  for (const each of all) admission.enter(each)
  admission.enter(applicant('other', 0, 'b'))
  expect(events).toEqual(['other begins'])
  const [first] = all
  if (first) admission.leave(first)
  admission.release(2)
  expect(events.slice(1)).toEqual(['v begins', 'w begins'])
  admission.release(2)
  admission.release(2)
  expect(events.slice(3)).toEqual(['x begins'])
})
