import { expect, test } from 'vitest'
import { type BoundedSession, Overrun } from '../connection.ts'
import { createHiddenViews, VIEW_TEXTS } from './hidden-views.ts'

const DEEP = VIEW_TEXTS * 2 ** 26

/** Session of a server with these views and their texts; one with the text `deep` takes too long to open. */
function serverWith(views: ReadonlyMap<string, string>) {
  const opened: string[] = []
  const session: BoundedSession = {
    query: () => Promise.resolve([...views.keys()].map((name) => ({ name })) as never),
    within(_ms, text) {
      const name = /`(\w+)`$/.exec(text)?.[1] ?? ''
      opened.push(name)
      const shown = views.get(name) ?? ''
      return shown === 'deep' ? Promise.reject(new Overrun()) : Promise.resolve([{ 'Create View': shown }] as never)
    },
  }
  return { session, opened: () => opened.splice(0) }
}

test('a call ends with the first view that takes too long, and others keep the size that was read last', async () => {
  const views = new Map(['a', 'b', 'c'].map((name) => [name, 'text']))
  const { session, opened } = serverWith(views)
  const hidden = createHiddenViews(session)
  expect([await hidden.read('shop', 'all'), opened()]).toEqual([3 * VIEW_TEXTS * 4, ['a', 'b', 'c']])
  views.set('b', 'deep')
  expect([await hidden.read('shop', 'busy'), opened()]).toEqual([2 * VIEW_TEXTS * 4 + DEEP, ['a', 'b']])
  // A view that took too long is not opened again before the next sweep.
  expect([await hidden.read('shop', 'busy'), opened()]).toEqual([2 * VIEW_TEXTS * 4 + DEEP, ['a', 'c']])
})

test('a sweep opens one of the views again that took too long, in turns', async () => {
  const views = new Map(['a', 'b'].map((name) => [name, 'deep']))
  const { session, opened } = serverWith(views)
  const hidden = createHiddenViews(session)
  const calls = [await hidden.read('shop', 'busy'), await hidden.read('shop', 'busy'), await hidden.read('shop', 'busy')]
  expect([calls, opened()]).toEqual([
    [DEEP, 2 * DEEP, 2 * DEEP],
    ['a', 'b'],
  ])
  expect([await hidden.read('shop', 'all'), await hidden.read('shop', 'all'), opened()]).toEqual([2 * DEEP, 2 * DEEP, ['a', 'b']])
  views.set('a', 'text')
  expect([await hidden.read('shop', 'all'), opened()]).toEqual([DEEP + VIEW_TEXTS * 4, ['a']])
  views.delete('b')
  expect(await hidden.read('shop', 'busy')).toBe(VIEW_TEXTS * 4)
})

test('a database that does not exist any more is forgotten', async () => {
  const { session, opened } = serverWith(new Map([['a', 'deep']]))
  const hidden = createHiddenViews(session)
  await hidden.read('shop', 'all')
  hidden.retain(new Set(['shop']))
  await hidden.read('shop', 'busy')
  expect(opened()).toEqual(['a'])
  hidden.retain(new Set())
  await hidden.read('shop', 'busy')
  expect(opened()).toEqual(['a'])
})
