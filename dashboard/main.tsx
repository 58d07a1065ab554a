import { render } from 'preact'
import 'uplot/dist/uPlot.min.css'
import './styles/base.css'
import './styles/parts.css'
import './styles/layout.css'
import './styles/pages.css'
import { App } from './app.tsx'
import { takeCode } from './sign-in-code.ts'
import { showInvisibleText } from './visible-text.ts'

showInvisibleText()
const root = document.getElementById('app')
if (root) {
  root.textContent = ''
  render(<App code={takeCode()} />, root)
}
