import HTTPCore
import Trust

extension FuzzTarget {
    /// The beginning of a client's stream. A ClientHello is read the same however it arrives, ends
    /// where it ends for a server of the TLS library, and says the same to it.
    func checkClientHello(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let opening = try Arrivals.read(bytes) { ends in Opening(bytes, ends) }
        if let count = opening.count, count > bytes.count {
            throw FuzzCheckError("\(count) bytes belong to a ClientHello")
        }
        guard let library = LibraryHello.reading(bytes) else {
            throw FuzzCheckError("the library has no memory")
        }
        switch (opening.hello, opening.error, library) {
        case (let hello?, _, .read(let other)): try Self.check(hello, other)
        case (_?, _, .waits): throw FuzzCheckError("the library waits for more of the ClientHello")
        case (nil, nil, .read):
            throw FuzzCheckError("the library does not wait for more of the ClientHello")
        // What is refused here may be accepted there, which is less strict.
        default: break
        }
        return opening.hello != nil
    }

    /// What the gateway decides by must be what a server decides by.
    private static func check(
        _ hello: ClientHello, _ library: LibraryHello
    ) throws(FuzzCheckError) {
        guard library.legacyVersion == UInt32(hello.legacyVersion),
            library.random == hello.random, library.sessionID == hello.sessionID,
            library.suites == hello.suites.flatMap({ TLSBytes.short(Int($0)) })
        else { throw FuzzCheckError("\(hello) is another ClientHello for the library") }
        // A list with a type and a name: five bytes before the name.
        var name = library.extensions[0].map { $0.dropFirst(5).map(ASCII.lowercased) }
        if let found = name, found.count > 1, found.last == UInt8(ascii: ".") {
            name = Array(found.dropLast())
        }
        let versions = hello.versions.map { versions in
            TLSBytes.vector(versions.flatMap { TLSBytes.short(Int($0)) }, lengthBytes: 1)
        }
        guard name == hello.serverName.map({ Array($0.utf8) }),
            library.extensions[43] == versions,
            Array((library.extensions[16] ?? []).dropFirst(2)) == hello.applicationProtocols,
            library.extensions[35] ?? [] == hello.ticket,
            (library.extensions[41] != nil) == hello.offersPreSharedKey,
            (library.extensions[42] != nil) == hello.offersEarlyData
        else { throw FuzzCheckError("\(hello) has other extensions for the library") }
    }
}

/// What was read of a client's first bytes.
private struct Opening: Equatable {
    var hello: ClientHello?
    /// Where the ClientHello ends.
    var count: Int?
    var error: TLSWireError?

    init(_ bytes: [UInt8], _ ends: [Int]) {
        var opening = ClientOpening()
        var start = 0
        for end in ends {
            do throws(TLSWireError) {
                let found = try bytes.part(start..<end) { part throws(TLSWireError) in
                    try opening.take(part)
                }
                if let found {
                    (hello, count) = (found.hello, start + found.count)
                    return
                }
            } catch {
                self.error = error
                return
            }
            start = end
        }
    }
}

extension [UInt8] {
    /// Calls `body` with a part of the bytes.
    func part<Result, Failure: Error>(
        _ range: Range<Int>,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (buffer) throws(Failure) -> Result in
            try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[range]))
        }
    }
}
