import HTTPCore

// How many exchanges one client may have on their way to origins, or waiting for the translation of
// what is stored. What is answered from memory as it is is not counted: it is over at once, and
// costs nothing that others wait for.
extension Exchange {
    /// The client, as far as limits are concerned.
    package var clientNetwork: IPNetwork? { client?.account?.network }

    /// Counts the exchange among those of its client, once. False: there are as many as may be, and
    /// it has been answered.
    func isAdmitted() -> Bool {
        guard countedFor == nil, let account = client?.account else { return true }
        let limit = environment.policy.configuration.limits.perClient.exchanges
        guard account.beginExchange(limit: limit) else {
            reply(with: .clientExchangeLimit, closing: false)
            return false
        }
        countedFor = account
        return true
    }

    /// The exchange is over.
    func leaveAccount() {
        guard let countedFor else { return }
        self.countedFor = nil
        countedFor.endExchange()
    }
}
