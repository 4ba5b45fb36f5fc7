import COpenSSL
import PinfoldTLS
import Testing
import Trust

@Suite("Trust, by real handshakes")
struct TrustTests {
    /// Runs a case and checks both ends: a refused server has no session and not one byte.
    func check(_ example: TrustCase, version: Int32) throws {
        let server = TestServer(
            example.chain, options: TestServer.Options(maximumVersion: version))
        try checkClient(example, port: server.port)
        let records = server.records()
        #expect(records.count == 1)
        guard example.refusal != nil else {
            #expect(records.map(\.request) == [Array("request".utf8)])
            return
        }
        #expect(records.allSatisfy { !$0.isEstablished && $0.request.isEmpty })
        #expect(records.allSatisfy { $0.handshakeError?.contains("alert") == true })
    }

    /// The client's end, closed on return.
    func checkClient(_ example: TrustCase, port: UInt16) throws {
        let context = try TLSClientContext.make(example.pinsets, roots: example.roots)
        let client = try TestClient(context, port: port, host: example.host)
        let error = client.handshake()
        guard let refusal = example.refusal else {
            #expect(error == nil)
            #expect(client.exchange() == "hello")
            return
        }
        guard case .trust(let failure) = error else {
            Issue.record("expected a refusal, not \(String(describing: error))")
            return
        }
        #expect(failure.token == refusal)
        #expect(failure.pinset == example.pinset)
        #expect(error?.token == refusal)
        // A refused connection stays refused and sends nothing.
        #expect(client.handshake() == error)
        #expect(!client.write(Array("request".utf8)))
        #expect(client.read(16).result == .failed)
        #expect(client.connection.facts == nil)
        #expect(client.connection.shutdown())
    }

    static let chains: [TrustCase] = [
        TrustCase("a complete chain to a root", PKI.leaf, PKI.intermediate),
        TrustCase("a complete chain with its root sent too", PKI.leaf, PKI.intermediate, PKI.root),
        TrustCase("certificates sent out of order", PKI.leaf, PKI.root, PKI.intermediate),
        TrustCase("a leaf directly under the root", PKI.direct),
        TrustCase("the certificate's wildcard", PKI.direct, host: "a.wild.test"),
        TrustCase("a host in capitals with a final dot", PKI.direct, host: "SERVICE.test."),
        TrustCase("an address", PKI.direct, host: "127.0.0.1"),
        TrustCase("an IPv6 address", PKI.direct, host: "::1"),
        TrustCase("an IPv6 address in brackets", PKI.direct, host: "[0:0::1]"),
        TrustCase("a leaf that is itself an anchor", PKI.direct, roots: [PKI.direct]),
        TrustCase("a self-signed leaf that is an anchor", PKI.selfSigned, roots: [PKI.selfSigned]),
        TrustCase("an intermediate that is an anchor", PKI.leaf, roots: [PKI.intermediate]),
        TrustCase("wrong host name", PKI.direct, host: "other.test", refusal: "host-mismatch"),
        TrustCase(
            "wildcard over two labels", PKI.direct, host: "a.b.wild.test",
            refusal: "host-mismatch"),
        TrustCase("wildcard over none", PKI.direct, host: "wild.test", refusal: "host-mismatch"),
        TrustCase(
            "wildcard over part of a label", PKI.otherName, host: "wx.partial.test",
            refusal: "host-mismatch"),
        TrustCase("common name beside other names", PKI.otherName, refusal: "host-mismatch"),
        TrustCase("common name alone", PKI.commonNameOnly, refusal: "host-mismatch"),
        TrustCase("wrong address", PKI.direct, host: "127.0.0.2", refusal: "host-mismatch"),
        TrustCase("wrong IPv6 address", PKI.direct, host: "::2", refusal: "host-mismatch"),
        TrustCase(
            "an address as DNS name", PKI.addressAsName, host: "127.0.0.1",
            refusal: "host-mismatch"),
        TrustCase("no host at all", PKI.direct, host: "", refusal: "host-mismatch"),
        TrustCase("expired", PKI.expired, refusal: "certificate-expired"),
        TrustCase("not yet valid", PKI.early, refusal: "certificate-not-yet-valid"),
        TrustCase(
            "expired intermediate", PKI.underExpired, PKI.expiredIntermediate,
            refusal: "certificate-expired"),
        TrustCase("self-signed", PKI.selfSigned, refusal: "self-signed"),
        TrustCase("untrusted root", PKI.rogueLeaf, PKI.rogueRoot, refusal: "untrusted-root"),
        TrustCase("untrusted root that is not sent", PKI.rogueLeaf, refusal: "incomplete-chain"),
        TrustCase("missing intermediate", PKI.leaf, refusal: "incomplete-chain"),
        TrustCase("no roots", PKI.leaf, PKI.intermediate, roots: [], refusal: "incomplete-chain"),
        TrustCase("not for servers", PKI.clientOnly, refusal: "wrong-purpose"),
        TrustCase("issued by a leaf", PKI.issuedByLeaf, PKI.direct, refusal: "wrong-purpose"),
        TrustCase(
            "issued by a leaf that is an anchor", PKI.issuedByLeaf, PKI.direct,
            roots: [PKI.direct], refusal: "wrong-purpose"),
        TrustCase("a key of 1024 bits", PKI.weak, refusal: "weak-cryptography"),
        TrustCase(
            "outside the issuer's names", PKI.outside, PKI.constrained,
            refusal: "constraint-violated"),
        TrustCase(
            "issuer of the right name with another key", PKI.impostorLeaf, PKI.intermediate,
            refusal: "bad-signature"),
    ]

    @Test(
        arguments: chains,
        [TLS1_2_VERSION, TLS1_3_VERSION])
    func `without pins a server is trusted by its chain and name`(
        _ example: TrustCase, version: Int32
    ) throws {
        try check(example, version: version)
    }

    static let keys: [TrustCase] =
        TestCertificate.PinForm.allCases.flatMap { form in
            [PKI.leaf, PKI.intermediate, PKI.root].map { pinned in
                TrustCase(
                    "\(form) of \(pinned.identity.subject)", PKI.leaf, PKI.intermediate,
                    pinsets: [pinset(.publicKey, pinned.pins(form))])
            }
        } + [
            TrustCase(
                "one of several pins", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.rogueLeaf.pins(.key) + PKI.leaf.pins(.key))]),
            TrustCase(
                "a renewed certificate with the pinned key", PKI.renewed, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.certificateFile))]),
            TrustCase(
                "wrong pin", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.rogueLeaf.pins(.key))],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "right pin, wrong host name", PKI.leaf, PKI.intermediate, host: "x.test",
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.key))],
                refusal: "host-mismatch", by: "p"),
            TrustCase(
                "right pin, expired", PKI.expired,
                pinsets: [pinset(.publicKey, PKI.expired.pins(.key))],
                refusal: "certificate-expired", by: "p"),
            TrustCase(
                "right pin, self-signed", PKI.selfSigned,
                pinsets: [pinset(.publicKey, PKI.selfSigned.pins(.key))],
                refusal: "self-signed", by: "p"),
            TrustCase(
                "right pin, untrusted root", PKI.rogueLeaf, PKI.rogueRoot,
                pinsets: [pinset(.publicKey, PKI.rogueLeaf.pins(.key))],
                refusal: "untrusted-root", by: "p"),
            TrustCase(
                "genuine certificate appended to a rogue chain", PKI.rogueLeaf, PKI.rogueRoot,
                PKI.leaf, pinsets: [pinset(.publicKey, PKI.leaf.pins(.key))],
                refusal: "untrusted-root", by: "p"),
            TrustCase(
                "genuine certificates appended to a trusted chain of another", PKI.direct,
                PKI.leaf, PKI.intermediate, pinsets: [pinset(.publicKey, PKI.leaf.pins(.key))],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "a private CA as the pinset's anchor", PKI.rogueLeaf,
                pinsets: [
                    pinset(.publicKey, PKI.rogueLeaf.pins(.key), anchors: [PKI.rogueRoot])
                ]),
            TrustCase(
                "a private CA's pin needs no leaf's", PKI.rogueLeaf,
                pinsets: [
                    pinset(.publicKey, PKI.rogueRoot.pins(.key), anchors: [PKI.rogueRoot])
                ]),
            TrustCase(
                "anchors beside the roots", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.key), anchors: [PKI.rogueRoot])]),
            TrustCase(
                "a private CA, wrong pin", PKI.rogueLeaf,
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.key), anchors: [PKI.rogueRoot])],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "a private CA, wrong host name", PKI.rogueLeaf, host: "x.test",
                pinsets: [
                    pinset(.publicKey, PKI.rogueLeaf.pins(.key), anchors: [PKI.rogueRoot])
                ], refusal: "host-mismatch", by: "p"),
            TrustCase(
                "a private CA, but another's certificate", PKI.selfSigned,
                pinsets: [
                    pinset(.publicKey, PKI.selfSigned.pins(.key), anchors: [PKI.rogueRoot])
                ], refusal: "self-signed", by: "p"),
            TrustCase(
                "a private CA among the roots", PKI.rogueLeaf, roots: [PKI.rogueRoot],
                pinsets: [pinset(.publicKey, PKI.rogueLeaf.pins(.key))]),
            TrustCase(
                "name not validated, wrong host name", PKI.leaf, PKI.intermediate,
                host: "x.test",
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.key), validatesName: false)]),
            TrustCase(
                "name not validated, expired", PKI.expired, host: "x.test",
                pinsets: [pinset(.publicKey, PKI.expired.pins(.key), validatesName: false)],
                refusal: "certificate-expired", by: "p"),
            TrustCase(
                "mode none, name not validated", PKI.leaf, PKI.intermediate, host: "x.test",
                pinsets: [pinset(.none, validatesName: false)]),
            TrustCase(
                "mode none compares no pins", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.none, PKI.rogueLeaf.pins(.key))]),
        ]

    @Test(
        arguments: keys,
        [TLS1_2_VERSION, TLS1_3_VERSION])
    func `key pins hold for keys on the verified chain`(_ example: TrustCase, version: Int32) throws
    {
        try check(example, version: version)
    }

    static let invalid: [TrustCase] =
        [
            TrustCase(
                "mode none, name not validated: anything passes", PKI.expiredSelfSigned,
                host: "x.test", pinsets: [pinset(.none, allowInvalid: true, validatesName: false)])
        ]
        + [PKI.selfSigned, PKI.expiredSelfSigned, PKI.expired, PKI.rogueLeaf, PKI.weak].map {
            leaf in
            TrustCase(
                "key of \(leaf.identity.subject) pinned", leaf, host: "x.test",
                pinsets: [pinset(.publicKey, leaf.pins(.key), allowInvalid: true)])
        } + [
            TrustCase(
                "fingerprint of the leaf pins its key", PKI.selfSigned,
                pinsets: [pinset(.publicKey, PKI.selfSigned.pins(.fingerprint), allowInvalid: true)]
            ),
            TrustCase(
                "key of a CA is not the leaf's", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.intermediate.pins(.key), allowInvalid: true)],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "genuine certificate appended to a rogue chain, key", PKI.rogueLeaf,
                PKI.rogueRoot, PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.key), allowInvalid: true)],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "genuine certificate appended to a rogue one, fingerprint", PKI.selfSigned,
                PKI.leaf,
                pinsets: [pinset(.publicKey, PKI.leaf.pins(.fingerprint), allowInvalid: true)],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "genuine certificate appended, certificate mode", PKI.rogueLeaf, PKI.rogueRoot,
                PKI.leaf, PKI.intermediate,
                pinsets: [
                    pinset(.certificate, PKI.leaf.pins(.certificateFile), allowInvalid: true)
                ],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "certificate mode, self-signed pinned", PKI.selfSigned,
                pinsets: [
                    pinset(.certificate, PKI.selfSigned.pins(.certificateFile), allowInvalid: true)
                ]),
            TrustCase(
                "certificate mode, self-signed by fingerprint", PKI.selfSigned,
                pinsets: [
                    pinset(.certificate, PKI.selfSigned.pins(.fingerprint), allowInvalid: true)
                ]),
            TrustCase(
                "certificate mode, private CA pinned", PKI.rogueLeaf,
                pinsets: [
                    pinset(.certificate, PKI.rogueRoot.pins(.certificateFile), allowInvalid: true)
                ]),
            TrustCase(
                "certificate mode, private CA by fingerprint, sent", PKI.rogueLeaf, PKI.rogueRoot,
                pinsets: [
                    pinset(.certificate, PKI.rogueRoot.pins(.fingerprint), allowInvalid: true)
                ]),
            TrustCase(
                "certificate mode, private CA by fingerprint, not sent", PKI.rogueLeaf,
                pinsets: [
                    pinset(.certificate, PKI.rogueRoot.pins(.fingerprint), allowInvalid: true)
                ],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "certificate mode still checks dates", PKI.expiredSelfSigned,
                pinsets: [
                    pinset(
                        .certificate, PKI.expiredSelfSigned.pins(.certificateFile),
                        allowInvalid: true)
                ], refusal: "certificate-expired", by: "p"),
            TrustCase(
                "certificate mode still checks the name", PKI.selfSigned, host: "x.test",
                pinsets: [
                    pinset(.certificate, PKI.selfSigned.pins(.certificateFile), allowInvalid: true)
                ], refusal: "host-mismatch", by: "p"),
            TrustCase(
                "certificate mode, name not validated", PKI.selfSigned, host: "x.test",
                pinsets: [
                    pinset(
                        .certificate, PKI.selfSigned.pins(.certificateFile), allowInvalid: true,
                        validatesName: false)
                ]),
        ]

    @Test(
        arguments: invalid,
        [TLS1_2_VERSION, TLS1_3_VERSION])
    func `invalid certificates are allowed only as far as pins prove the server`(
        _ example: TrustCase, version: Int32
    ) throws {
        try check(example, version: version)
    }

    static let certificates: [TrustCase] =
        [PKI.leaf, PKI.intermediate, PKI.root].flatMap { pinned in
            [TestCertificate.PinForm.fingerprint, .certificateFile].map { form in
                TrustCase(
                    "\(form) of \(pinned.identity.subject)", PKI.leaf, PKI.intermediate,
                    pinsets: [pinset(.certificate, pinned.pins(form))])
            }
        } + [
            TrustCase(
                "one of several pins", PKI.leaf, PKI.intermediate,
                pinsets: [
                    pinset(
                        .certificate,
                        PKI.rogueLeaf.pins(.certificateFile) + PKI.root.pins(.fingerprint))
                ]),
            TrustCase(
                "a renewed certificate with the same key", PKI.renewed, PKI.intermediate,
                pinsets: [pinset(.certificate, PKI.leaf.pins(.certificateFile))],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "wrong certificate", PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.certificate, PKI.direct.pins(.certificateFile))],
                refusal: "no-pin-matches", by: "p"),
            TrustCase(
                "pinned, but not valid under the roots", PKI.selfSigned,
                pinsets: [pinset(.certificate, PKI.selfSigned.pins(.certificateFile))],
                refusal: "self-signed", by: "p"),
            TrustCase(
                "pinned, and a private CA as the pinset's anchor", PKI.rogueLeaf,
                pinsets: [
                    pinset(
                        .certificate, PKI.rogueLeaf.pins(.certificateFile), anchors: [PKI.rogueRoot]
                    )
                ]),
            TrustCase(
                "private CA by fingerprint as the pinset's anchor", PKI.rogueLeaf,
                pinsets: [
                    pinset(
                        .certificate, PKI.rogueRoot.pins(.fingerprint), anchors: [PKI.rogueRoot])
                ]),
            TrustCase(
                "issued by the pinned leaf", PKI.issuedByLeaf, PKI.direct,
                pinsets: [
                    pinset(.certificate, PKI.direct.pins(.certificateFile), allowInvalid: true)
                ], refusal: "wrong-purpose", by: "p"),
            TrustCase(
                "pinned, wrong host name", PKI.leaf, PKI.intermediate, host: "x.test",
                pinsets: [pinset(.certificate, PKI.leaf.pins(.certificateFile))],
                refusal: "host-mismatch", by: "p"),
            TrustCase(
                "genuine certificates appended to a trusted chain of another", PKI.direct,
                PKI.leaf, PKI.intermediate,
                pinsets: [pinset(.certificate, PKI.leaf.pins(.certificateFile))],
                refusal: "no-pin-matches", by: "p"),
        ]

    @Test(
        arguments: certificates,
        [TLS1_2_VERSION, TLS1_3_VERSION])
    func `certificate pins are the only anchors of a second evaluation`(
        _ example: TrustCase, version: Int32
    ) throws {
        try check(example, version: version)
    }

    static let several: [TrustCase] = [
        TrustCase(
            "both pass", PKI.leaf, PKI.intermediate,
            pinsets: [
                pinset(.publicKey, PKI.leaf.pins(.key), name: "a"),
                pinset(.certificate, PKI.root.pins(.certificateFile), name: "b"),
            ]),
        TrustCase(
            "the first refuses", PKI.leaf, PKI.intermediate,
            pinsets: [
                pinset(.publicKey, PKI.direct.pins(.key), name: "a"),
                pinset(.certificate, PKI.root.pins(.certificateFile), name: "b"),
            ], refusal: "no-pin-matches", by: "a"),
        TrustCase(
            "the second refuses", PKI.leaf, PKI.intermediate,
            pinsets: [
                pinset(.publicKey, PKI.leaf.pins(.key), name: "a"),
                pinset(.certificate, PKI.direct.pins(.certificateFile), name: "b"),
            ], refusal: "no-pin-matches", by: "b"),
        TrustCase(
            "a lenient one does not excuse a strict one", PKI.selfSigned,
            pinsets: [
                pinset(.publicKey, PKI.selfSigned.pins(.key), allowInvalid: true, name: "a"),
                pinset(.publicKey, PKI.selfSigned.pins(.key), name: "b"),
            ], refusal: "self-signed", by: "b"),
        TrustCase(
            "one validates the name, the other does not", PKI.leaf, PKI.intermediate,
            host: "x.test",
            pinsets: [
                pinset(.publicKey, PKI.leaf.pins(.key), validatesName: false, name: "a"),
                pinset(.publicKey, PKI.leaf.pins(.key), name: "b"),
            ], refusal: "host-mismatch", by: "b"),
        TrustCase(
            "an anchor holds for its own pinset only", PKI.rogueLeaf,
            pinsets: [
                pinset(
                    .publicKey, PKI.rogueLeaf.pins(.key), anchors: [PKI.rogueRoot], name: "a"),
                pinset(.publicKey, PKI.rogueLeaf.pins(.key), name: "b"),
            ], refusal: "incomplete-chain", by: "b"),
    ]

    @Test(arguments: several)
    func `every one of several pinsets must pass`(_ example: TrustCase) throws {
        try check(example, version: TLS1_3_VERSION)
    }
}
