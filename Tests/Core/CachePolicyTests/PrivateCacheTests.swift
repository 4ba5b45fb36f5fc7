import HTTPCore
import Testing

@testable import CachePolicy

@Suite("A private cache, by RFC 9111")
struct PrivateCacheTests {
    private let options: PolicyOptions = {
        var options = PolicyOptions()
        options.isShared = false
        return options
    }()

    private func storable(
        _ fields: [String], status: Int = 200, for request: Request = Request(),
        _ options: PolicyOptions
    ) -> StoreDecision {
        let response = Response(fields, status: status)
        return StoreDecision.decide(
            on: response.head, in: response.bytes.span, to: request.head, in: request.bytes.span,
            requestTime: start, responseTime: start, options: options)
    }

    private func refusal(_ decision: StoreDecision) -> NotStoredReason? {
        if case .doNotStore(let reason) = decision { reason } else { nil }
    }

    @Test(
        arguments: [
            ("private, max-age=60", NotStoredReason.responsePrivate),
            ("private=\"set-cookie\", max-age=60", nil),
            ("private=\"\", max-age=9", .responsePrivate),
            ("private, no-store", .responseNoStore), ("max-age=60", nil),
        ] as [(String, NotStoredReason?)])
    func `stores what is private, and still not what is not to be stored`(
        value: String, shared: NotStoredReason?
    ) {
        let fields = ["Cache-Control: \(value)"]
        #expect(refusal(storable(fields, PolicyOptions())) == shared)
        let own = shared == .responsePrivate ? nil : shared
        #expect(refusal(storable(fields, options)) == own)
    }

    @Test func `takes private for a word that any status may be stored by (§3)`() {
        let fields = ["Cache-Control: private", "ETag: \"a\""]
        #expect(refusal(storable(fields, status: 302, options)) == nil)
        #expect(refusal(storable(["ETag: \"a\""], status: 302, options)) == .notCacheableByDefault)
    }

    @Test func `stores answers to Authorization, and answers with them (§3.5)`() {
        let request = Request(["Authorization: Basic Zm9v"])
        let fields = ["Cache-Control: max-age=60"]
        #expect(refusal(storable(fields, for: request, PolicyOptions())) == .authorization)
        #expect(refusal(storable(fields, for: request, options)) == nil)
        #expect(Stored(fields, options: options).decide(request).summary == "hit")
    }

    @Test(
        arguments: [
            ("s-maxage=10, max-age=60", Int64(10), Int64(60)), ("s-maxage=10", 10, 0),
            ("max-age=60", 60, 60),
        ])
    func `ignores s-maxage (§5.2.2.10)`(value: String, shared: Int64, own: Int64) {
        let fields = ["Cache-Control: \(value)", "ETag: \"a\""]
        #expect(Stored(fields).metadata.lifetime == shared)
        #expect(Stored(fields, options: options).metadata.lifetime == own)
    }

    @Test(
        arguments: [
            ("proxy-revalidate", true, false), ("s-maxage=1", true, false),
            ("must-revalidate", true, true),
        ])
    func `ignores proxy-revalidate (§5.2.2.8)`(value: String, shared: Bool, own: Bool) {
        let fields = ["Cache-Control: max-age=60, \(value)"]
        #expect(Stored(fields).metadata.flags.contains(.neverStale) == shared)
        #expect(Stored(fields, options: options).metadata.flags.contains(.neverStale) == own)
    }

    @Test func `guesses at the freshness of answers to Cookie, too`() {
        let request = Request(["Cookie: a=b"])
        let fields = ["Last-Modified: \(date(-1000))", "Date: \(date())"]
        #expect(refusal(storable(fields, for: request, PolicyOptions())) == .cookie)
        #expect(refusal(storable(fields, for: request, options)) == nil)
    }
}

@Suite("Credentials in the secondary key")
struct SecretKeyTests {
    /// FIPS 180-4's examples, and lengths around a block.
    @Test(
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                String(repeating: "a", count: 64),
                "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"
            ),
        ])
    func `are kept as SHA-256 has them`(text: String, hex: String) throws {
        let value = Array(text.utf8)
        let digest = CredentialDigest.of(value.span)
        let digits = try #require(digest).map { byte in
            let text = String(byte, radix: 16)
            return text.count == 1 ? "0" + text : text
        }
        #expect(digits.joined() == hex)
    }

    @Test func `are not written, and match only themselves`() throws {
        var options = PolicyOptions()
        options.nominatedFields = [Array("authorization".utf8)]
        let request = Request(["Authorization: Bearer secret"])
        let key = try VaryNames().key(
            in: [UInt8]().span, for: request.head, in: request.bytes.span, options: options)
        #expect(!String(decoding: key.bytes, as: UTF8.self).contains("secret"))
        #expect(VaryKey(bytes: key.bytes) == key)
        #expect(key.matches(request))
        for fields in [[], ["Authorization: Bearer other"], ["Authorization: bearer secret"]] {
            let other = Request(fields)
            #expect(!key.matches(other))
        }
    }
}
