import { engineFaults } from './engine-faults.ts'

engineFaults({ motor: 'postgresql-15.4.0', neighbour: 'mariadb-10.7.4' })
