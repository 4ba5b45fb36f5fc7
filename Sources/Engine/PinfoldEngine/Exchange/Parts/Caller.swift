import Authentication

extension Exchange {
    /// Who is asking, where the listener wants to know.
    struct Caller {
        private(set) var identity: Identity?
        private(set) var recipient = ProofRecipient.proxy
        /// The method of the credentials that came with the request.
        private(set) var offered: AuthenticationMethod?
        /// Whether the request came with an Authorization that was for the gateway. It is not
        /// forwarded, and the request counts as one with Authorization (RFC 9111 §3.5).
        private(set) var consumedAuthorization = false
        /// Whether the consumed field is still in the request's head.
        private(set) var holdsConsumedField = false
        /// When a client that was told to come back later may do so. Unless failures delay it,
        /// nobody knows when there will be a place for its check: a while, and no promise.
        private(set) var retryAfterSeconds: UInt64 = 5
        private var check: PasswordCheck?
        private var cancel: (@Sendable () -> Void)?

        mutating func isAsked(by recipient: ProofRecipient) { self.recipient = recipient }

        mutating func offers(_ method: AuthenticationMethod) { offered = method }

        mutating func proved(_ identity: Identity) {
            self.identity = identity
            // One who is known by the handshake sends Authorization to the server.
            guard recipient == .origin, identity.method != .certificate else { return }
            consumedAuthorization = true
            holdsConsumedField = true
        }

        /// The request is that of another exchange, of the gateway's own.
        mutating func stand(for other: Caller) {
            identity = other.identity
            consumedAuthorization = other.consumedAuthorization
            holdsConsumedField = other.holdsConsumedField
        }

        /// Rules have made another head, without the consumed field.
        mutating func fieldRemoved() { holdsConsumedField = false }

        // MARK: The password check that is waited for

        mutating func wait(for check: PasswordCheck, cancel: @escaping @Sendable () -> Void) {
            self.check = check
            self.cancel = cancel
        }

        mutating func takeCheck() -> PasswordCheck? {
            cancel = nil
            return check.take()
        }

        mutating func mayTryAgain(afterMilliseconds milliseconds: Int64) {
            retryAfterSeconds = UInt64(max(1, (milliseconds + 999) / 1000))
        }

        mutating func cancelCheck() {
            check = nil
            if let cancel = cancel.take() { cancel() }
        }
    }
}
