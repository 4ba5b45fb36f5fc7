import Testing

/// A year of a small fleet. The table in the page on pins is a year of 200 servers, with seed 1.
@Suite("A simulated year of a fleet")
struct FleetSimulationTests {
    typealias Policy = FleetSimulation.Policy

    private func year(_ seed: UInt64) -> FleetSimulation.Result {
        var simulation = FleetSimulation(servers: 40, seed: seed)
        return simulation.run()
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `tells of the attack, and proposed pins outlast what those made by hand do not`(
        seed: UInt64
    ) throws {
        let result = year(seed)
        func outages(_ policy: Policy) throws -> Int {
            try #require(result.outcomes[policy]).outages
        }
        let byHand = try outages(.chainByHand)
        #expect(try outages(.leafByHand) > byHand)
        #expect(try outages(.proposedOnce) * 4 < byHand)
        #expect(try outages(.proposedMonthly) <= outages(.proposedOnce))
        #expect(result.attackTold)
        for policy in Policy.allCases {
            #expect(result.outcomes[policy]?.attackRefused == true)
            #expect(result.outcomes[policy]?.pinsAttacker == false)
        }
        // All that is told of as a new issuer is either the attack or a change of the authority.
        #expect(result.newKeysOfNewIssuers == result.changesOfAuthority + 1)
        #expect(result == year(seed))
    }
}
