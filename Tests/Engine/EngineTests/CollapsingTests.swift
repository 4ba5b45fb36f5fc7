import Testing

@testable import PinfoldEngine

@Suite("Patience with other exchanges")
struct CollapsingTests {
    @Test func `is used up by waiting for other gateways as well`() {
        var collapsing = Exchange.Collapsing()
        #expect(collapsing.patience == nil)
        // Whoever has not waited has not used any.
        collapsing.asksFleet(at: 100)
        collapsing.hasAskedFleet(at: 100, of: 50)
        #expect(collapsing.patience == nil)
        collapsing.asksFleet(at: 100)
        collapsing.hasAskedFleet(at: 130, of: 50)
        #expect(collapsing.patience == 20)
        // An answer that was not waited for, as that of the disk alone.
        collapsing.hasAskedFleet(at: 500, of: 50)
        #expect(collapsing.patience == 20)
        collapsing.asksFleet(at: 600)
        collapsing.hasAskedFleet(at: 700, of: 50)
        #expect(collapsing.patience == 0)
    }

    @Test func `of which another exchange has taken its part is not renewed`() {
        var collapsing = Exchange.Collapsing()
        collapsing.endWait(patience: 30, isAnswered: false)
        collapsing.asksFleet(at: 0)
        collapsing.hasAskedFleet(at: 10, of: 5_000)
        #expect(collapsing.patience == 20)
    }
}
