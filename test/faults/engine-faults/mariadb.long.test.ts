import { engineFaults } from './engine-faults.ts'

engineFaults({ motor: 'mariadb-10.7.4', neighbour: 'postgresql-15.4.0', endsHung: true })
