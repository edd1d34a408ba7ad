//! Made-up transactions of every type a fork allows, with made-up signatures.

use std::sync::Arc;

use alloy_consensus::{
    EthereumTxEnvelope, SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy,
};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Bytes, Signature, TxKind, U256};

use super::{blobs::Sidecar, entropy::Entropy, fork::Fork};

type Envelope = EthereumTxEnvelope<TxEip4844>;

/// Blobs of one transaction, at most.
const BLOBS_PER_TRANSACTION: usize = 2;

/// Makes the transactions of one block.
pub(super) struct Maker<'a> {
    pub(super) chain_id: u64,
    pub(super) fork: Fork,
    /// In wei.
    pub(super) base_fee: u64,
    pub(super) entropy: &'a mut Entropy,
}

impl Maker<'_> {
    /// Encoded transactions of block `number`: one to four without blobs, then those that carry
    /// `sidecars`, in order.
    pub(super) fn block(mut self, number: u64, sidecars: &[Arc<Sidecar>]) -> Vec<Bytes> {
        let mut all = vec![self.legacy()];
        if number % 2 == 1 {
            all.push(self.dynamic_fee());
        }
        if number.is_multiple_of(3) {
            all.push(self.access_list());
        }
        if number % 4 == 1 && self.fork >= Fork::Prague {
            all.push(self.set_code());
        }
        for blobs in sidecars.chunks(BLOBS_PER_TRANSACTION) {
            all.push(self.blobs(blobs));
        }
        all.iter().map(|transaction| transaction.encoded_2718().into()).collect()
    }

    fn sign<T: SignableTransaction<Signature>>(&mut self, transaction: T) -> Envelope
    where
        Envelope: From<alloy_consensus::Signed<T>>,
    {
        transaction.into_signed(self.signature()).into()
    }

    /// `r` and `s` are below half the curve order, as in a signature that could be real.
    fn signature(&mut self) -> Signature {
        let (r, s) = (self.entropy.u256() >> 2, self.entropy.u256() >> 2);
        Signature::new(r, s, self.entropy.u64().is_multiple_of(2))
    }

    fn input(&mut self, len: usize) -> Bytes {
        self.entropy.vec(len).into()
    }

    fn tip(&self) -> u128 {
        1_000_000_000
    }

    fn max_fee(&self) -> u128 {
        u128::from(self.base_fee) + self.tip()
    }

    fn legacy(&mut self) -> Envelope {
        let transaction = TxLegacy {
            chain_id: Some(self.chain_id),
            nonce: self.entropy.u64() % 1000,
            gas_price: self.max_fee(),
            gas_limit: 21_000,
            to: TxKind::Call(self.entropy.address()),
            value: U256::from(self.entropy.u64()),
            input: Bytes::new(),
        };
        self.sign(transaction)
    }

    fn dynamic_fee(&mut self) -> Envelope {
        let transaction = TxEip1559 {
            chain_id: self.chain_id,
            nonce: self.entropy.u64() % 1000,
            gas_limit: 100_000,
            max_fee_per_gas: self.max_fee(),
            max_priority_fee_per_gas: self.tip(),
            to: TxKind::Create,
            value: U256::ZERO,
            access_list: AccessList::default(),
            input: self.input(260),
        };
        self.sign(transaction)
    }

    fn access_list(&mut self) -> Envelope {
        let item = AccessListItem {
            address: self.entropy.address(),
            storage_keys: vec![self.entropy.bytes(), self.entropy.bytes()],
        };
        let transaction = TxEip2930 {
            chain_id: self.chain_id,
            nonce: self.entropy.u64() % 1000,
            gas_price: self.max_fee(),
            gas_limit: 60_000,
            to: TxKind::Call(self.entropy.address()),
            value: U256::from(1),
            access_list: AccessList(vec![item]),
            input: self.input(36),
        };
        self.sign(transaction)
    }

    fn set_code(&mut self) -> Envelope {
        let authorization = Authorization {
            chain_id: U256::from(self.chain_id),
            address: self.entropy.address(),
            nonce: 0,
        };
        let signed = SignedAuthorization::new_unchecked(
            authorization,
            1,
            self.entropy.u256() >> 2,
            self.entropy.u256() >> 2,
        );
        let transaction = TxEip7702 {
            chain_id: self.chain_id,
            nonce: self.entropy.u64() % 1000,
            gas_limit: 80_000,
            max_fee_per_gas: self.max_fee(),
            max_priority_fee_per_gas: self.tip(),
            to: self.entropy.address(),
            value: U256::ZERO,
            access_list: AccessList::default(),
            authorization_list: vec![signed],
            input: Bytes::new(),
        };
        self.sign(transaction)
    }

    fn blobs(&mut self, sidecars: &[Arc<Sidecar>]) -> Envelope {
        let transaction = TxEip4844 {
            chain_id: self.chain_id,
            nonce: self.entropy.u64() % 1000,
            gas_limit: 21_000,
            max_fee_per_gas: self.max_fee(),
            max_priority_fee_per_gas: self.tip(),
            to: self.entropy.address(),
            value: U256::ZERO,
            access_list: AccessList::default(),
            blob_versioned_hashes: sidecars.iter().map(|sidecar| sidecar.versioned_hash).collect(),
            max_fee_per_blob_gas: 1_000_000,
            input: self.input(5),
        };
        self.sign(transaction)
    }
}
