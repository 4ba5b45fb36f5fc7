import ContentCoding
import HTTPCore
import PinfoldConfiguration
import Testing
import Transformation
import Trust

@testable import PinfoldEngine

@Suite("The form in which stored content is sent")
struct ContentFormTests {
    private func accepted(_ value: String?) -> AcceptedCodings {
        AcceptedCodings(value.map { [Array($0.utf8)] } ?? [])
    }

    @Test(
        arguments: [
            (nil, [.gzip], .stored),
            ("gzip", [.gzip], .stored),
            ("gzip;q=0.001", [.gzip], .stored),
            ("x-gzip, identity", [.gzip], .stored),
            ("*", [.gzip], .stored),
            ("", [.gzip], .decoded),
            ("identity", [.gzip], .decoded),
            ("br", [.gzip], .decoded),
            ("gzip", [.brotli], .decoded),
            ("gzip, br", [.zstd], .decoded),
            ("zstd", [.zstd], .stored),
            ("gzip;q=0", [.gzip], .decoded),
            ("gzip, br", [.gzip, .brotli], .stored),
            ("gzip", [.gzip, .brotli], .decoded),
            ("gzip", [.gzip, .gzip], .stored),
            ("identity", [.gzip, .gzip, .gzip], .stored),
            // Nothing that the gateway could send is acceptable.
            ("identity;q=0", [.gzip], .stored),
            ("*;q=0", [.gzip], .stored),
            ("identity", nil, .stored),
            ("identity", [], .stored),
        ] as [(String?, [ContentCoding]?, ContentForm)])
    func `encoded content is decoded for those who do not accept one of its codings`(
        value: String?, codings: [ContentCoding]?, expected: ContentForm
    ) {
        #expect(ContentForm(ofEncoded: codings, for: accepted(value)) == expected)
    }

    @Test(
        arguments: [
            (nil, .stored), ("", .stored), ("identity", .stored), ("deflate", .stored),
            ("gzip", .encoded(.gzip)), ("br", .encoded(.brotli)), ("*", .encoded(.brotli)),
            ("gzip, br", .encoded(.brotli)), ("gzip, br;q=0.9", .encoded(.gzip)),
            ("gzip, deflate, br, zstd", .encoded(.brotli)), ("zstd", .encoded(.zstd)),
            ("zstd, gzip", .encoded(.zstd)), ("br;q=0.9, gzip, zstd", .encoded(.zstd)),
            ("zstd;q=0.5, gzip", .encoded(.gzip)), ("zstd;q=0, *", .encoded(.brotli)),
            ("gzip;q=0.5, identity", .stored), ("gzip;q=0", .stored),
            ("identity;q=0.2, gzip;q=0.5", .encoded(.gzip)), ("*;q=0", .stored),
        ] as [(String?, ContentForm)])
    func `content is compressed in what the client accepts best`(
        value: String?, expected: ContentForm
    ) {
        #expect(ContentForm(ofCompressible: accepted(value)) == expected)
    }

    @Test func `each form has a tag of its own, from which the origin's can be told`() throws {
        let forms: [ContentForm] = [
            .decoded, .encoded(.gzip), .encoded(.brotli), .encoded(.zstd),
        ]
        for tag in [#""abc""#, #"W/"abc""#] {
            var tags = [tag]
            for form in forms {
                let mapping = try #require(form.entityTags)
                let made = try #require(
                    mapping.translated(Array(tag.utf8), coding: form.coding ?? .identity))
                #expect(EntityTagMapping.stored(made) == Array(tag.utf8))
                tags.append(String(decoding: made, as: UTF8.self))
            }
            #expect(Set(tags).count == 5)
            #expect(tags.allSatisfy { $0.hasPrefix("W/") == tag.hasPrefix("W/") })
            #expect(EntityTagMapping.stored(Array(tag.utf8)) == nil)
        }
        #expect(Set(forms.map(\.rendition)).count == 4)
        #expect(ContentForm.stored.rendition == nil)
    }

    @Test(
        arguments: [
            ("text/html", "/", false), ("image/svg+xml", "/a.svgz", false), (nil, "/", false),
            ("application/gzip", "/", true), ("application/x-tar", "/a", true),
            (nil, "/a.tar.gz", true), ("application/octet-stream", "/a.TGZ?x=1", true),
            ("application/zstd", "/", true), (nil, "/a.pkg.tar.zst", true),
            ("text/html", "/zst", false),
            ("text/plain", "/Packages.gz", true), ("text/plain", "/?file=a.gz", false),
            ("text/javascript", "/gz", false), ("text/javascript", "/a.gz/b", false),
        ] as [(String?, String, Bool)])
    func `a compressed file is told by its type or its name`(
        type: String?, path: String, expected: Bool
    ) {
        #expect(CompressedFile.isMeant(type: type, path: Array(path.utf8)) == expected)
    }
}

@Suite("How servers are said to be verified")
struct TrustDescriptionTests {
    private func pinset(
        _ name: String, _ mode: PinningMode = .publicKey, isEnforced: Bool = true,
        allowsAny: Bool = false
    ) -> Pinset {
        var pinset = Pinset(name: name, mode: mode, allowInvalidCertificates: allowsAny)
        pinset.isEnforced = isEnforced
        return pinset
    }

    @Test func `pinsets that are enforced are told apart from those that only report`() {
        func text(_ pinsets: Pinset...) -> String {
            TrustDescription.text(isSecure: true, pinsets)
        }
        let (api, next) = (pinset("api"), pinset("next", .certificate, isEnforced: false))
        #expect(text() == "verified")
        #expect(text(api) == "pinned: api")
        #expect(text(next) == "verified; reported: next")
        #expect(text(api, next) == "pinned: api; reported: next")
        #expect(text(api, pinset("spare")) == "pinned: api, spare")
        #expect(text(pinset("own", allowsAny: true)) == "pinned: own (any chain)")
        // Without pins only the chain counts, whoever signed it.
        #expect(text(pinset("corp", .none)) == "verified")
        #expect(text(pinset("loose", .none, allowsAny: true)) == "any chain")
        #expect(text(pinset("loose", .none, allowsAny: true), api) == "pinned: api")
    }

    @Test func `nothing is verified without TLS`() {
        #expect(TrustDescription.text(isSecure: false, [pinset("api")]) == "clear")
    }
}
