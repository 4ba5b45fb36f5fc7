import Testing

@testable import Gateway

@Suite("Requesting permits from other workers")
struct PermitRequestTests {
    @Test func `no more permits are granted than were requested`() {
        let request = PermitRequest(requester: 0, wanted: 2, others: 2)
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

    @Test func `the last one to answer knows it`() {
        let request = PermitRequest(requester: 0, wanted: 1, others: 3)
        #expect(!request.answer())
        #expect(!request.answer())
        #expect(request.answer())
    }
}
