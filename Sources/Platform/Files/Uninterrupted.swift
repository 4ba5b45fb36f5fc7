import CLinux

/// Makes a system call, again each time that a signal interrupts it (EINTR).
///
/// - Parameter call: returns a negative number if it fails, and then leaves the reason in errno(3).
/// - Returns: what the call returned, or the negated error number.
@inlinable @inline(__always)
public func uninterrupted<Number: FixedWidthInteger & SignedInteger>(
    _ call: () -> Number
) -> Number {
    while true {
        let result = call()
        if result >= 0 { return result }
        let code = __errno_location().pointee
        if code != EINTR { return -Number(code) }
    }
}

/// Writes all bytes to a descriptor, in as many calls as the system needs.
///
/// - Returns: 0, or the error number of the call that failed. A call that writes nothing counts as
///   EIO, because the next one would write nothing either.
package func writeAll(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = uninterrupted { write(descriptor, rest.baseAddress, rest.count) }
            guard count > 0 else { return count < 0 ? Int32(-count) : EIO }
            done += count
        }
        return 0
    }
}
