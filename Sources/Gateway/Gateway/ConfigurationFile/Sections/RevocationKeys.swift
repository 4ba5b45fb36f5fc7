import PinfoldConfiguration
import PinfoldTLS
import Trust

/// `crls` and `ocspStapling` of `tls`.
extension UpstreamTLS {
    static var revocationKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "crls", \.crls,
                reading: { reader, field in
                    field.boundedList(of: "CRL files")?.compactMap { reader.crlFile($0) }
                },
                text: { YAMLText.list($0.map(\.path)) }),
            .choice("ocspStapling", \.ocspStapling),
        ]
    }
}

extension SnapshotReader {
    fileprivate func crlFile(_ field: Field) -> CRLFile? {
        guard let path = field.filePath(), let contents = field.contents(ofFile: path) else {
            return nil
        }
        do throws(CRLFileError) {
            let (file, warnings) = try CRLFile.read(
                contents, path: path, at: validation.environment.now)
            for warning in warnings { field.warn(warning) }
            return file
        } catch {
            field.fail(error.text, expected: CRLFile.expected)
            return nil
        }
    }

    /// Warns of revocation settings that have no effect, or refuse servers, because chains are not
    /// verified.
    func warnOfUnverifiedChains(_ field: Field, _ entry: HostEntry, _ pinsets: [PinsetEntry]) {
        let own = entry.pinsets.map { pinsets[$0].pinset }
        if let pinset = own.first(where: \.anchorsServersUnverified), !entry.tls.crls.isEmpty {
            field.warn(
                "because pinset \(pinset.name) allows invalid certificates, chains to the roots "
                    + "are not verified: a server whose own certificate is pinned is refused "
                    + "unless it sends its issuer's certificate and tls.crls has that issuer's "
                    + "list; an issuer among the roots need not be sent")
        }
        guard let first = own.first,
            own.allSatisfy({ $0.allowInvalidCertificates && $0.mode != .certificate })
        else { return }
        let reason =
            "because pinset \(first.name) allows invalid certificates, chains are not verified"
        if entry.tls.ocspStapling == .required {
            field.warn("\(reason), and tls.ocspStapling: required refuses every server")
        }
        if !entry.tls.crls.isEmpty { field.warn("\(reason), and tls.crls is not used") }
    }

    /// Warns of lists that apply to no chain, or only to chains through an intermediate CA.
    func warnOfForeignLists(_ field: Field?, _ tls: UpstreamTLS) {
        // Inherited lists are reported where they are written.
        guard let elements = field?.key("crls")?.elements, elements.count == tls.crls.count,
            let roots = try? TLSTrustRoots(tls.rootSources)
        else { return }
        for (element, file) in zip(elements, tls.crls) {
            for der in file.lists {
                guard let list = try? RevocationList(der: der) else { continue }
                let (isKnown, hasSigned) = list.issuer(among: roots)
                if !isKnown {
                    element.warn(
                        "the issuer \(list.issuer) is not among the roots: its list applies only "
                            + "to servers that send a CA certificate with that name")
                } else if !hasSigned {
                    element.warn(
                        "the list of \(list.issuer) is not signed by the root with that name: "
                            + "servers below that root are refused")
                }
            }
        }
    }
}

/// Why a CRL file cannot be used.
struct CRLFileError: Error {
    var text: String
}

extension CRLFile {
    /// The expected content, for errors.
    static let expected = "CRLs in PEM, or one in DER"

    /// Reads a file's lists. Returns them with warnings.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    static func read(
        _ contents: [UInt8], path: String, at now: Int64
    ) throws(CRLFileError) -> (file: CRLFile, warnings: [String]) {
        let lists: [[UInt8]]
        do throws(RevocationListError) {
            lists = try RevocationListFile.decode(contents)
        } catch {
            throw CRLFileError(text: "\(quoted(path: path)) is not a CRL file: \(error.problem)")
        }
        var warnings: [String] = []
        var digests: [SHA256Digest] = []
        var parsed: [RevocationList] = []
        for (index, der) in lists.enumerated() {
            let place =
                lists.count == 1 ? quoted(path: path) : "\(quoted(path: path)), list \(index + 1),"
            let list: RevocationList
            do throws(RevocationList.ParseError) {
                list = try RevocationList(der: der)
            } catch {
                throw CRLFileError(text: "\(place) holds \(error)")
            }
            guard let content = list.content else {
                throw CRLFileError(text: "\(place) cannot be hashed: out of memory")
            }
            digests.append(content)
            parsed.append(list)
            let whose = "the list of \(list.issuer)"
            if list.ends <= now {
                warnings.append(
                    "\(place) holds \(whose), which is out of date: servers below this CA are "
                        + "refused; fetch the current one")
            } else if list.ends - now < (list.ends - list.issued) / 10 {
                warnings.append(
                    "\(place) holds \(whose), which will be out of date in "
                        + "\(Quantity.text(milliseconds: (list.ends - now) / 60 * 60_000)); "
                        + "fetch the current one")
            }
            if list.issued > now {
                warnings.append("\(place) holds \(whose), which is dated in the future")
            }
        }
        let file = CRLFile(path: path, lists: lists, contents: digests, ends: ends(of: parsed))
        return (file, warnings)
    }

    /// When a newer one of each list is due. One that another in the file replaces is not used:
    /// then it is the other's end.
    private static func ends(of lists: [RevocationList]) -> [Int64] {
        let ofIssuer = Dictionary(grouping: lists) { $0.issuer }
        return lists.map { list in
            let newer = ofIssuer[list.issuer]?.filter { list.isReplaced(by: $0) } ?? []
            return newer.map(\.ends).max() ?? list.ends
        }
    }

    /// The same file, but with lists from a previous version of the file where those are newer, for
    /// the same issuer and scope. Each causes a warning. Otherwise restoring an old list would undo
    /// revocations.
    func keepingNewer(of before: CRLFile) -> (file: CRLFile, warnings: [String]) {
        var file = self
        var warnings: [String] = []
        var present = lists.map { try? RevocationList(der: $0) }
        for (index, der) in before.lists.enumerated() where !lists.contains(der) {
            guard let old = try? RevocationList(der: der) else { continue }
            let isOutdone = present.contains {
                $0.map { !$0.isReplaced(by: old) && $0.isOfSameSeries(as: old) } ?? false
            }
            guard !isOutdone,
                let place = present.firstIndex(where: { $0?.isReplaced(by: old) ?? false })
            else { continue }
            present[place] = old
            file.lists[place] = der
            file.contents[place] = before.contents[index]
            file.ends[place] = old.ends
            warnings.append(
                "\(quoted(path: path)) holds an older list of \(old.issuer) than the one in use, "
                    + "which stays in use until the file has a newer one or the configuration is "
                    + "reloaded")
        }
        return (file, warnings)
    }
}

extension Pinset {
    /// Whether a server's own pinned certificate is enough, without a chain to a root.
    fileprivate var anchorsServersUnverified: Bool {
        mode == .certificate && allowInvalidCertificates
            && pins.contains(where: \.isCertificateOfServer)
    }
}

extension UpstreamTLS {
    fileprivate var rootSources: [RootSource] {
        roots.flatMap { source -> [RootSource] in
            switch source {
            case .system: [.system]
            case .file(let path, let certificates):
                certificates.map { .file(name: path, contents: $0) }
            }
        }
    }
}
