import EngineTestSupport
import Testing

@testable import PinfoldEngine

@Suite("The fingerprint of rules by what is stored")
struct StoredFormTests {
    @Test func `where the origin's form is stored, only what decides about that counts`() throws {
        func fingerprint(_ form: String, _ response: String) throws -> TrustFingerprint {
            try testPolicy(
                "hosts: [{ match: [a.test], cache: { form: \(form) }, response: \(response) }]"
            ).fingerprint(entryIndex: 0, isFixed: false)
        }
        let (json, nulls) = ("from: json, to: plist", "removesKeysWithNullValues: true")
        let origin = try fingerprint("origin", "{ body: { \(json) } }")
        for other in [
            "from: json, to: xml", "\(json), propertyList: binary", "\(json), \(nulls)",
            "from: json, to: json, \(nulls)",
        ] {
            #expect(try fingerprint("origin", "{ body: { \(other) } }") == origin)
        }
        let image = try fingerprint("origin", "{ image: { convert: { image/webp: image/png } } }")
        #expect(
            try fingerprint("origin", "{ image: { scale: { width: 9, height: 9 } } }") == image)
        let different = try [
            origin, image, fingerprint("translated", "{ body: { \(json) } }"),
            fingerprint("translated", "{ body: { \(json), \(nulls) } }"),
            fingerprint("translated", "{ image: { convert: { image/webp: image/png } } }"),
            fingerprint("origin", "{ body: { from: xml, to: json } }"),
            fingerprint("origin", "{ statusCodes: [200], body: { \(json) } }"),
            fingerprint("origin", "{ validate: json, body: { \(json) } }"),
            fingerprint("origin", "{ body: { \(json), maximum: 1MiB } }"),
            fingerprint("origin", "{ body: { \(json), larger: pass } }"),
            fingerprint("origin", "{ body: { \(json), noTransform: refuse } }"),
            fingerprint("translated", "{ image: {} }"), fingerprint("translated", "{}"),
        ]
        #expect(Set(different).count == different.count)
        // There is one form only.
        #expect(try fingerprint("origin", "{}") == fingerprint("translated", "{}"))
        #expect(
            try fingerprint("origin", "{ image: {} }") == fingerprint("translated", "{ image: {} }")
        )
    }
}
