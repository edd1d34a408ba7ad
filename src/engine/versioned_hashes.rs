//! The duty that REST-SSZ took off the EL: comparing `expectedBlobVersionedHashes` with the blob
//! transactions of the payload (cancun.md, `engine_newPayloadV3`, point 2).

use alloy_rlp::Header;

/// EIP-2718 type byte of a blob transaction (EIP-4844).
const BLOB_TX_TYPE: u8 = 0x03;
/// Place of `blob_versioned_hashes` among the fields of a blob transaction (EIP-4844).
const VERSIONED_HASHES_FIELD: usize = 10;
/// Greatest type byte of EIP-2718; from `0xc0` on a transaction is a legacy RLP list.
const MAX_TX_TYPE: u8 = 0x7f;

/// A transaction whose blob hashes cannot be read.
///
/// Its verdict belongs to the EL, which is asked over JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transaction of the payload cannot be read")]
pub struct Unreadable;

/// What comparing showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Same hashes in the same order.
    Equal,
    /// Other hashes, another number of them, or another order.
    Different,
}

/// Compares the expected hashes with those of the blob transactions, in order.
///
/// # Errors
/// When a transaction cannot be read.
pub fn compare<'a>(
    transactions: impl Iterator<Item = &'a [u8]>,
    expected: &[[u8; 32]],
) -> Result<Comparison, Unreadable> {
    let mut expected = expected.iter();
    let mut comparison = Comparison::Equal;
    for transaction in transactions {
        for_each_hash(transaction, |hash| {
            if expected.next().is_none_or(|wanted| wanted != hash) {
                comparison = Comparison::Different;
            }
        })?;
    }
    if expected.next().is_some() {
        comparison = Comparison::Different;
    }
    Ok(comparison)
}

fn for_each_hash(transaction: &[u8], mut see: impl FnMut(&[u8])) -> Result<(), Unreadable> {
    let (&kind, mut rest) = transaction.split_first().ok_or(Unreadable)?;
    match kind {
        BLOB_TX_TYPE => {}
        0..=MAX_TX_TYPE | 0xc0.. => return Ok(()),
        _ => return Err(Unreadable),
    }
    let mut fields = list(&mut rest)?;
    if !rest.is_empty() {
        return Err(Unreadable);
    }
    for _ in 0..VERSIONED_HASHES_FIELD {
        skip(&mut fields)?;
    }
    let mut hashes = list(&mut fields)?;
    while !hashes.is_empty() {
        let hash = Header::decode_bytes(&mut hashes, false).map_err(|_| Unreadable)?;
        if hash.len() != 32 {
            return Err(Unreadable);
        }
        see(hash);
    }
    Ok(())
}

/// Takes a list off the front and gives its contents.
fn list<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Unreadable> {
    Header::decode_bytes(bytes, true).map_err(|_| Unreadable)
}

fn skip(bytes: &mut &[u8]) -> Result<(), Unreadable> {
    let header = Header::decode(bytes).map_err(|_| Unreadable)?;
    *bytes = bytes.get(header.payload_length..).ok_or(Unreadable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::{SignableTransaction, TxEip1559, TxEip4844, TxLegacy};
    use alloy_eips::eip2718::Encodable2718;
    use alloy_primitives::{B256, Signature, U256};

    fn signature() -> Signature {
        Signature::new(U256::from(7), U256::from(9), false)
    }

    fn blob_tx(hashes: &[[u8; 32]]) -> Vec<u8> {
        let tx = TxEip4844 {
            blob_versioned_hashes: hashes.iter().copied().map(B256::from).collect(),
            ..Default::default()
        };
        tx.into_signed(signature()).encoded_2718()
    }

    fn plain_txs() -> [Vec<u8>; 2] {
        [
            TxLegacy::default().into_signed(signature()).encoded_2718(),
            TxEip1559::default().into_signed(signature()).encoded_2718(),
        ]
    }

    fn run(transactions: &[Vec<u8>], expected: &[[u8; 32]]) -> Result<Comparison, Unreadable> {
        compare(transactions.iter().map(Vec::as_slice), expected)
    }

    const A: [u8; 32] = [0x0a; 32];
    const B: [u8; 32] = [0x0b; 32];

    #[test]
    fn blob_05_hashes_must_agree_in_order_and_number() {
        let [legacy, dynamic] = plain_txs();
        let transactions = [legacy, blob_tx(&[A]), dynamic, blob_tx(&[B, A])];
        assert_eq!(run(&transactions, &[A, B, A]), Ok(Comparison::Equal));
        for wrong in [&[A, B][..], &[A, B, A, A], &[B, A, A], &[A, A, A], &[]] {
            assert_eq!(run(&transactions, wrong), Ok(Comparison::Different), "{wrong:?}");
        }
    }

    #[test]
    fn blob_05_no_blob_transaction_fits_only_an_empty_list() {
        assert_eq!(run(&plain_txs(), &[]), Ok(Comparison::Equal));
        assert_eq!(run(&[], &[]), Ok(Comparison::Equal));
        assert_eq!(run(&plain_txs(), &[A]), Ok(Comparison::Different));
    }

    #[test]
    fn blob_05_a_transaction_that_cannot_be_read_is_not_judged() {
        let whole = blob_tx(&[A, B]);
        for end in 0..whole.len() {
            assert_eq!(run(&[whole[..end].to_vec()], &[A, B]), Err(Unreadable), "cut at {end}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert_eq!(run(&[longer], &[A, B]), Err(Unreadable));
        assert_eq!(run(&[vec![0x80]], &[]), Err(Unreadable));
        assert_eq!(run(&[whole, vec![]], &[A, B]), Err(Unreadable));
    }
}
