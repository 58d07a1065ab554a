import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, call, signIn, signOut, whenSignedOut } from './api/client.ts'
import type { Me } from './api/types.ts'
import { Empty, Failure, Loading } from './parts/basics.tsx'
import { navigate, usePath } from './parts/navigation.tsx'
import { Page } from './pages/page.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { pathOf, type Place, routeOf } from './router.ts'
import { Shell } from './shell.tsx'

type Session =
  | { readonly state: 'opening' }
  | { readonly state: 'out'; readonly message?: string | undefined }
  | { readonly state: 'failed'; readonly failure: ApiFailure }
  | { readonly state: 'in'; readonly me: Me }

const NO_COOKIE = 'Your browser did not keep the session cookie. Open this page by HTTPS, and allow its cookies.'

/** The dashboard: signs in by the code of a link, by the cookie of an earlier visit, or by the form. */
export function App({ code }: { code: string | undefined }) {
  const [session, setSession] = useState<Session>({ state: 'opening' })

  /** Opens the session; `message` says why there may be none. */
  async function open(message?: string): Promise<void> {
    try {
      const { data } = await call<Me>('GET', '/v1/me')
      setSession({ state: 'in', me: data })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setSession(error.status === 401 ? { state: 'out', message } : { state: 'failed', failure: error })
    }
  }

  useEffect(() => {
    async function begin(): Promise<void> {
      let message: string | undefined
      if (code !== undefined) {
        await signIn({ code }).catch((error: unknown) => (message = error instanceof Error ? error.message : undefined))
      }
      await open(message)
      whenSignedOut(() => setSession({ state: 'out', message: 'Your session has ended. Sign in again.' }))
    }
    void begin()
  }, [code])

  async function leave(): Promise<void> {
    try {
      await signOut()
      navigate('/dashboard', { replace: true })
      setSession({ state: 'out', message: 'You are signed out.' })
    } catch (error) {
      // The browser still has the cookie: the page must not say otherwise.
      if (!(error instanceof ApiFailure)) throw error
      setSession({ state: 'failed', failure: error })
    }
  }

  if (session.state === 'opening') return <Loading />
  if (session.state === 'out') return <SignIn message={session.message} onSignedIn={() => open(NO_COOKIE)} />
  if (session.state === 'failed') return <Unreachable failure={session.failure} onRetry={() => open()} />
  return <SignedIn me={session.me} onLeave={leave} />
}

const Unreachable = ({ failure, onRetry }: { failure: ApiFailure; onRetry: () => Promise<void> }) => (
  <main class="alone">
    <Failure failure={failure} />
    <button type="button" class="button" onClick={onRetry}>
      Try again
    </button>
  </main>
)

function SignedIn({ me, onLeave }: { me: Me; onLeave: () => Promise<void> }) {
  const route = routeOf(usePath())
  const [first] = me.namespaces
  const isStart = route.page === 'start'
  useEffect(() => {
    if (isStart && first) navigate(pathOf(lastPlace(me) ?? first, 'tunnels'), { replace: true })
  }, [isStart, first])

  if (!first) {
    return (
      <Shell me={me} route={route} onLeave={onLeave}>
        <Empty icon="anchor" title="No namespace yet">
          <p>{me.user} has a role in no namespace. An admin of a namespace can add you, or create one by the API.</p>
        </Empty>
      </Shell>
    )
  }
  const access = 'organization' in route ? me.namespaces.find((one) => isSame(one, route)) : undefined
  if (access) rememberPlace(access)
  return (
    <Shell me={me} route={route} onLeave={onLeave}>
      {isStart ? <Loading /> : <Page route={route} access={access} />}
    </Shell>
  )
}

const isSame = (one: Place, other: Place): boolean => one.organization === other.organization && one.namespace === other.namespace

const LAST = 'mooring-namespace'

/** Remembers the namespace for the next visit: names alone, no secret. */
function rememberPlace({ organization, namespace }: Place): void {
  localStorage.setItem(LAST, `${organization}/${namespace}`)
}

const lastPlace = (me: Me): Place | undefined =>
  me.namespaces.find(({ organization, namespace }) => localStorage.getItem(LAST) === `${organization}/${namespace}`)
