import Testing

@testable import Gateway

@Suite("Asking other workers for places")
struct RoomRequestTests {
    @Test func `no more places are granted than were asked for`() {
        let request = RoomRequest(asker: 0, wanted: 2, others: 2)
        #expect(request.claim())
        request.grant()
        #expect(request.claim())
        #expect(!request.claim())
        // The worker that claimed it had none: another may have.
        request.giveUp()
        #expect(request.claim())
        request.grant()
        #expect(!request.claim())
        #expect(request.grantedCount == 2)
    }

    @Test func `the last one to answer says so`() {
        let request = RoomRequest(asker: 0, wanted: 1, others: 3)
        #expect(!request.answer())
        #expect(!request.answer())
        #expect(request.answer())
    }
}
