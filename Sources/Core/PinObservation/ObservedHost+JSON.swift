import Documents
import HTTPCore
import Trust

// A host as JSON: how it is kept in the file, and how `pinfold pin observed` exports it. Times are
// in seconds since 1970; certificates are listed once, and paths refer to them by their index.
extension ObservedHost {
    /// The host as one JSON object.
    package var json: JSONObject {
        var indices: [ObservedCertificate: Int] = [:]
        var certificates: [JSONObject] = []
        func index(_ certificate: ObservedCertificate) -> Int {
            if let known = indices[certificate] { return known }
            indices[certificate] = certificates.count
            certificates.append(certificate.json)
            return certificates.count - 1
        }
        let chains = chains.map { chain in
            var object = JSONObject()
            object.add("leaf", index(chain.leaf))
            object.add(
                "paths",
                chain.paths.map { path in
                    var object = JSONObject()
                    object.add(
                        raw: "issuers",
                        "[\(path.issuers.map { "\(index($0))" }.joined(separator: ","))]")
                    object.add("first", Int(path.firstSeen))
                    object.add("last", Int(path.lastSeen))
                    return object
                })
            object.add("first", Int(chain.firstSeen))
            object.add("last", Int(chain.lastSeen))
            object.add("verified", Int(clamping: chain.verified))
            object.add("verifiedDays", Int(clamping: chain.verifiedDays))
            object.add("lastVerified", chain.lastVerified.map { Int($0) })
            object.add("reported", Int(clamping: chain.reported))
            object.add("addresses", chain.addresses.map(\.json))
            object.add("forgottenAddresses", Int(clamping: chain.forgottenAddresses))
            return object
        }
        var object = JSONObject()
        object.add("host", name.host)
        object.add("port", Int(name.port))
        object.add("first", Int(firstSeen))
        object.add("last", Int(lastSeen))
        object.add("newKeys", Int(clamping: newKeys))
        object.add("newKeySeen", newKeySeen.map { Int($0) })
        object.add("forgottenChains", Int(clamping: forgottenChains))
        object.add("certificates", certificates)
        object.add("chains", chains)
        return object
    }

    /// Reads that; `nil` for anything else, and for more than the limits allow.
    package init?(json bytes: [UInt8]) {
        guard let value = try? JSONDocument.value(of: bytes),
            case .string(let host)? = value["host"],
            let port = value.integer("port").flatMap({ UInt16(exactly: $0) }),
            let (first, last) = value.period,
            let listed = value.elements("certificates"), let chains = value.elements("chains"),
            !chains.isEmpty, chains.count <= Self.chainsLimit
        else { return nil }
        var certificates: [ObservedCertificate] = []
        for one in listed {
            guard let certificate = ObservedCertificate(one) else { return nil }
            certificates.append(certificate)
        }
        self.init(name: ObservedName(host: host, port: port), time: first)
        lastSeen = last
        newKeys = value.count("newKeys")
        newKeySeen = value.time("newKeySeen")
        forgottenChains = value.count("forgottenChains")
        for one in chains {
            guard let chain = ObservedChain(one, certificates) else { return nil }
            self.chains.append(chain)
        }
    }
}

extension ObservedCertificate {
    fileprivate var json: JSONObject {
        var object = JSONObject()
        object.add("key", key.keyPinText)
        object.add("fingerprint", fingerprint.fingerprintText)
        object.add("subject", subject)
        object.add("issuer", issuer)
        object.add("notAfter", Int(notAfter))
        return object
    }

    fileprivate init?(_ value: DocumentValue) {
        guard case .string(let key)? = value["key"],
            case .literal(let pins)? = try? Pin.parse(key),
            case .keyDigest(let digest)? = pins.first,
            case .string(let print)? = value["fingerprint"],
            case .literal(let prints)? = try? Pin.parse(print),
            case .certificateFingerprint(let fingerprint)? = prints.first,
            case .string(let subject)? = value["subject"],
            case .string(let issuer)? = value["issuer"],
            let notAfter = value.integer("notAfter")
        else { return nil }
        let times = DocumentValue.times
        self.init(
            key: digest, fingerprint: fingerprint, subject: subject, issuer: issuer,
            notAfter: max(times.lowerBound, min(notAfter, times.upperBound)))
    }
}

extension ObservedAddress {
    fileprivate var json: JSONObject {
        var object = JSONObject()
        object.add("address", "\(address)")
        object.add("first", Int(firstSeen))
        object.add("last", Int(lastSeen))
        object.add("count", Int(clamping: count))
        return object
    }

    fileprivate init?(_ value: DocumentValue) {
        guard case .string(let text)? = value["address"], let address = IPAddress(text),
            let (first, last) = value.period
        else { return nil }
        self.init(
            address: address, firstSeen: first, lastSeen: last, count: value.count("count"))
    }
}

extension ObservedChain {
    fileprivate init?(_ value: DocumentValue, _ certificates: [ObservedCertificate]) {
        func certificate(_ number: Int64?) -> ObservedCertificate? {
            guard let index = number.flatMap({ Int(exactly: $0) }),
                certificates.indices.contains(index)
            else { return nil }
            return certificates[index]
        }
        guard let leaf = certificate(value.integer("leaf")), let paths = value.elements("paths"),
            (1...Self.pathsLimit).contains(paths.count),
            let (first, last) = value.period,
            let addresses = value.elements("addresses"), addresses.count <= Self.addressesLimit
        else { return nil }
        self.init(leaf: leaf, paths: [], firstSeen: first, lastSeen: last)
        for path in paths {
            guard let issuers = path.elements("issuers"), issuers.count <= Self.issuersLimit,
                let (first, last) = path.period
            else { return nil }
            var found: [ObservedCertificate] = []
            for issuer in issuers {
                guard let one = certificate(issuer.integer) else { return nil }
                found.append(one)
            }
            self.paths.append(ObservedPath(issuers: found, firstSeen: first, lastSeen: last))
        }
        verified = value.count("verified")
        verifiedDays = value.count("verifiedDays")
        lastVerified = value.time("lastVerified")
        reported = value.count("reported")
        forgottenAddresses = value.count("forgottenAddresses")
        for one in addresses {
            guard let address = ObservedAddress(one) else { return nil }
            self.addresses.append(address)
        }
    }
}

extension DocumentValue {
    fileprivate var integer: Int64? {
        if case .number(let number) = self { Int64(number.text) } else { nil }
    }

    fileprivate func integer(_ key: String) -> Int64? { self[key]?.integer }

    /// The times that there are, in seconds since 1970: until the year 10000.
    fileprivate static let times: ClosedRange<Int64> = 0...253_402_300_799

    /// A time; `nil` for any other number, because a difference of such could overflow.
    fileprivate func time(_ key: String) -> Int64? {
        integer(key).flatMap { Self.times.contains($0) ? $0 : nil }
    }

    /// When something was first and last seen.
    fileprivate var period: (first: Int64, last: Int64)? {
        guard let first = time("first"), let last = time("last"), first <= last else { return nil }
        return (first, last)
    }

    fileprivate func count(_ key: String) -> UInt64 { UInt64(clamping: integer(key) ?? 0) }

    fileprivate func elements(_ key: String) -> [DocumentValue]? {
        if case .array(let values)? = self[key] { values } else { nil }
    }
}
