import HTTPCore
import Testing

@testable import Authentication

@Suite("The credentials that a thread has found last")
struct RecentProofsTests {
    private static let ann = Identity(user: "ann", groups: [], by: proof)
    private static let proof = IdentityProof.token(ProofDigest(of: "t".utf8.span))
    private static let store = CredentialStore(realm: "r", users: nil, groups: nil, tokens: nil)

    private func kept(_ value: String, _ identity: Identity = ann, at now: Int64) -> RecentProofs {
        var recent = RecentProofs(random: (1, 2))
        recent.keep(identity, by: recent.hash(of: value.utf8.span), in: Self.store, at: now)
        return recent
    }

    @Test func `are found for a second`() {
        let recent = kept("Basic YTpi", at: 5000)
        let hash = recent.hash(of: "Basic YTpi".utf8.span)
        #expect(recent.identity(by: hash, in: Self.store, at: 5000) === Self.ann)
        #expect(recent.identity(by: hash, in: Self.store, at: 5999) === Self.ann)
        #expect(recent.identity(by: hash, in: Self.store, at: 6000) == nil)
    }

    @Test(arguments: ["Basic YTpj", "Basic YTpi ", "Basic YTp", "basic YTpi", ""])
    func `are those of one value`(other: String) {
        let recent = kept("Basic YTpi", at: 0)
        #expect(
            recent.identity(by: recent.hash(of: other.utf8.span), in: Self.store, at: 0) == nil)
        #expect(
            recent.hash(of: "Basic YTpi".utf8.span)
                != RecentProofs(random: (1, 3)).hash(of: "Basic YTpi".utf8.span))
    }

    @Test func `are forgotten with the users`() {
        var recent = kept("Basic YTpi", at: 0)
        let hash = recent.hash(of: "Basic YTpi".utf8.span)
        let changed = CredentialStore(realm: "r", users: nil, groups: nil, tokens: nil)
        #expect(recent.identity(by: hash, in: changed, at: 0) == nil)
        let other = recent.hash(of: "Basic b3RoZXI=".utf8.span)
        recent.keep(Self.ann, by: other, in: changed, at: 0)
        #expect(recent.identity(by: hash, in: changed, at: 0) == nil)
        #expect(recent.identity(by: hash, in: Self.store, at: 0) == nil)
    }

    @Test func `are as many as fit, and each is found or not, but never another`() {
        var recent = RecentProofs(random: (1, 2))
        for number in 0..<1000 {
            let identity = Identity(user: "\(number)", groups: [], by: Self.proof)
            recent.keep(
                identity, by: recent.hash(of: "\(number)".utf8.span), in: Self.store, at: 0)
        }
        var found = 0
        for number in 0..<1000 {
            let hash = recent.hash(of: "\(number)".utf8.span)
            guard let identity = recent.identity(by: hash, in: Self.store, at: 0) else { continue }
            #expect(identity.user == "\(number)")
            found += 1
        }
        #expect(found > RecentProofs.limit / 2 && found <= RecentProofs.limit)
    }
}
