import HTTPCore

// Limits the exchanges that one client may have in progress with origins, or waiting for the
// translation of a stored response. Responses from memory that need no translation are not counted:
// they are over immediately and use nothing that others wait for.
extension Exchange {
    /// The client to which limits apply.
    package var clientNetwork: IPNetwork? { client?.account?.network }

    /// Counts the exchange for its client, once. Returns false if the limit is reached; the
    /// exchange has then been answered.
    func isAdmitted() -> Bool {
        guard forwarding.account == nil, let account = client?.account else { return true }
        let limit = environment.policy.configuration.limits.perClient.exchanges
        guard account.beginExchange(limit: limit) else {
            reply(with: .gateway(.clientExchangeLimit), closing: false)
            return false
        }
        forwarding.count(for: account)
        return true
    }

    /// The exchange is over.
    func leaveAccount() {
        forwarding.takeAccount()?.endExchange()
    }
}
